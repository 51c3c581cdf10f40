/* A program in C: opens, chooses, packs, starts, moves, and gets errors.
 *
 *     c_abi LIBCUDA BUNDLE OTHER-BUNDLE KEY
 */
#include <dlfcn.h>
#include <kernelpack/kernelpack.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static kp_error* error;

/* Prints what a call came to, and forgets its error. */
static void say(const char* what, kp_status status) {
  printf("%s %d", what, status);
  if (error) printf(" %s|%s|%s", kp_error_where(error), kp_error_what(error), kp_error_hint(error));
  printf("\n");
  kp_error_free(error);
  error = NULL;
}

static void say_asked(const char* libcuda) {
  static char text[1 << 16];
  void* driver = dlopen(libcuda, RTLD_NOW);
  void (*take)(char*, size_t);
  *(void**)&take = dlsym(driver, "fake_take_log");
  take(text, sizeof text);
  fputs(text, stdout);
}

static void set_gpc(const char* libcuda, int multiprocessors) {
  void* driver = dlopen(libcuda, RTLD_NOW);
  void (*set)(int);
  *(void**)&set = dlsym(driver, "fake_gpc");
  set(multiprocessors);
}

int main(int count, char** words) {
  const kp_size sizes[] = {{"m", 100},      {"n", 16},      {"k", 72},       {"g", 4},
                           {"n_active", 3}, {"a_dtype", 9}, {"out_dtype", 9}};
  const kp_address addresses[] = {{"c", 0x10000},
                                  {"a", 0x20000},
                                  {"b", 0x30000},
                                  {"a_offsets", 0x40000},
                                  {"expert_ids", 0x50000}};
  const char* const missing[] = {"/no/such.kpk"};
  const char* const bundles[] = {words[2], words[3]};
  const char* const keys[] = {words[4]};
  const kp_stream captured = (kp_stream)0x11;
  kp_options options = {sizeof options, words[1], NULL, 0, NULL};
  kp_options signed_only = {sizeof signed_only, words[1], keys, COUNT(keys), NULL};
  kp_options stale = {sizeof stale, words[1], NULL, 0, "none.json"};
  kp_arguments arguments = {sizeof arguments, addresses, COUNT(addresses), &captured, NULL, 0};
  kp_problem problem = {sizeof problem, "lora_shrink_qkv", sizes, COUNT(sizes), 0, 2, 2};
  kp_device device = {sizeof device, 0, 0, 0, ""};
  kp_library* library = NULL;
  const kp_variant *variant = NULL, *there = NULL;
  kp_launch *launch = NULL, *nowhere = NULL;
  const char* id;
  size_t size, loaded = 0;
  int64_t bytes = -1;
  (void)count;

  say("no file", kp_library_open(missing, 1, &options, &library, &error));
  say("no paths", kp_library_open(NULL, 0, &options, &library, &error));
  say("tuned", kp_library_open(bundles, COUNT(bundles), &stale, &library, &error));
  say("trust", kp_library_open(bundles, COUNT(bundles), &signed_only, &library, &error));
  say("open", kp_library_open(bundles, COUNT(bundles), &options, &library, &error));
  say("device", kp_library_device(library, 1, &device, &error));
  printf("%d devices; %s %d.%d, %d\n", kp_library_device_count(library), device.name,
         device.capability_major, device.capability_minor, device.sm_count);
  say("select", kp_select(library, &problem, &variant, &error));
  say("capture", kp_launch_pack(library, variant, &problem, &arguments, &launch, &error));
  say("preload", kp_library_preload(library, 0, "lora_shrink_qkv", &loaded, &error));
  printf("%zu loaded\n", loaded);
  id = kp_variant_id(variant, &size);
  printf("%.*s\n", (int)size, id);
  say("workspace", kp_workspace_bytes(library, variant, &problem, &bytes, &error));
  printf("%d bytes\n", (int)bytes);
  say("pack", kp_launch_pack(library, variant, &problem, &arguments, &launch, &error));
  say("start", kp_launch_start(launch, NULL, &error));
  say("rebind", kp_launch_rebind(launch, "a", 0x60000, &error));
  say("start", kp_launch_start(launch, NULL, &error));
  say_asked(words[1]);
  problem.device = 1;
  arguments.stream = NULL;
  say("select there", kp_select(library, &problem, &there, &error));
  set_gpc(words[1], 1);
  say("no room", kp_launch_pack(library, there, &problem, &arguments, &nowhere, &error));
  problem.device = 0;
  say("misaligned", kp_launch_rebind(launch, "a", 0x60008, &error));
  problem.kernel = "other";
  say("unknown", kp_select(library, &problem, &variant, &error));
  problem.struct_size = 0;
  say("no size", kp_select(library, &problem, &variant, NULL));
  kp_launch_free(launch);
  say("unload", kp_library_unload(library, &error));
  kp_library_free(library);
  return 0;
}
