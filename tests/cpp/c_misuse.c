/* A program in C that gets each call wrong once: what lacks is an error, never a crash.
 *
 *     c_misuse LIBCUDA BUNDLE
 */
#include <kernelpack/kernelpack.h>
#include <stddef.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static kp_error* error;

/* Prints what a call came to, and forgets its error. */
static void say(const char* what, kp_status status) {
  printf("%s %d %s|%s\n", what, status, kp_error_where(error), kp_error_what(error));
  kp_error_free(error);
  error = NULL;
}

static kp_size sizes[] = {{"m", 100},      {"n", 16},      {"k", 72},        {"g", 4},
                          {"n_active", 3}, {"a_dtype", 9}, {"out_dtype", 9}, {"m", 5}};
static kp_address addresses[] = {{"c", 0x10000},
                                 {"a", 0x20000},
                                 {"b", 0x30000},
                                 {"a_offsets", 0x40000},
                                 {"expert_ids", 0x50000}};
static kp_problem problem = {sizeof problem, "lora_shrink_qkv", sizes, COUNT(sizes) - 1, 0, 2, 2};
static kp_arguments arguments = {sizeof arguments, addresses, COUNT(addresses), NULL, NULL, 0};
static kp_library* library;
static const kp_variant* variant;
static kp_launch* launch;

static kp_status pick(void) { return kp_select(library, &problem, &variant, &error); }

static kp_status pack(void) {
  kp_launch_free(launch);
  launch = NULL;
  return kp_launch_pack(library, variant, &problem, &arguments, &launch, &error);
}

static void lack_pointers(void) {
  kp_device device = {sizeof device, 0, 0, 0, ""};
  int64_t bytes;
  size_t size = 1;
  const char* id = kp_variant_id(NULL, &size);
  kp_error_free(NULL);
  kp_launch_free(NULL);
  kp_library_free(NULL);
  printf("devices %d\n", kp_library_device_count(NULL));
  printf("id [%s] %d\n", id, (int)size);
  say("device of none", kp_library_device(NULL, 0, &device, &error));
  say("no device", kp_library_device(library, 0, NULL, &error));
  say("preload none", kp_library_preload(NULL, 0, NULL, NULL, &error));
  say("unload none", kp_library_unload(NULL, &error));
  say("select from none", kp_select(NULL, &problem, &variant, &error));
  say("select nothing", kp_select(library, NULL, &variant, &error));
  say("select to nowhere", kp_select(library, &problem, NULL, &error));
  say("workspace of none", kp_workspace_bytes(library, NULL, &problem, &bytes, &error));
  say("workspace to nowhere", kp_workspace_bytes(library, variant, &problem, NULL, &error));
  say("pack from none", kp_launch_pack(NULL, variant, &problem, &arguments, &launch, &error));
  say("pack none", kp_launch_pack(library, NULL, &problem, &arguments, &launch, &error));
  say("pack nothing", kp_launch_pack(library, variant, NULL, &arguments, &launch, &error));
  say("pack no arguments", kp_launch_pack(library, variant, &problem, NULL, &launch, &error));
  say("pack to nowhere", kp_launch_pack(library, variant, &problem, &arguments, NULL, &error));
  say("rebind none", kp_launch_rebind(NULL, "a", 0x20000, &error));
  say("rebind nothing", kp_launch_rebind(launch, NULL, 0x20000, &error));
  say("set none", kp_launch_set(NULL, "eps", 1, &error));
  say("set nothing", kp_launch_set(launch, NULL, 1, &error));
  say("start none", kp_launch_start(NULL, NULL, &error));
}

static void lack_parts(void) {
  problem.kernel = NULL;
  say("no kernel", pick());
  problem.kernel = "lora_shrink_qkv";
  problem.sizes = NULL;
  say("no sizes", pick());
  problem.sizes = sizes;
  sizes[0].name = NULL;
  say("a size without a name", pick());
  say("packed without a name", pack());
  sizes[0].name = "m";
  arguments.addresses = NULL;
  say("no addresses", pack());
  arguments.addresses = addresses;
  addresses[0].name = NULL;
  say("an address without a name", pack());
  addresses[0].name = "c";
  problem.struct_size = sizeof problem.struct_size + 4;
  say("a cut problem", pick());
  problem.struct_size = sizeof problem;
  arguments.struct_size = sizeof arguments - 1;
  say("cut arguments", pack());
  arguments.struct_size = offsetof(kp_arguments, numbers);
  arguments.number_count = 1; /* beyond what an older caller knows */
  say("older arguments", pack());
  arguments.struct_size = sizeof arguments;
  say("no numbers", pack());
  arguments.number_count = 0;
}

/* What Python's ops never pass on, because they refuse it. */
static void lie(void) {
  sizes[5].value = 3;
  say("another type", pack());
  sizes[5].value = 9;
  sizes[2].value = 70;
  say("another k", pack());
  sizes[2].value = 72;
  sizes[0].value = -5;
  say("m selected below 0", pick());
  say("m packed below 0", pack());
  sizes[0].value = 100;
  ++problem.size_count;
  say("m selected twice", pick());
  say("m packed twice", pack());
  --problem.size_count;
  addresses[1].address = 0;
  say("a nowhere", pack());
  addresses[1].address = 0x20000;
  sizes[4].value = addresses[4].address = 0;
  say("no groups, nowhere", pack());
  sizes[4].value = 3, addresses[4].address = 0x50000;
  say("pack", pack());
  say("set unknown", kp_launch_set(launch, "eps", 1, &error));
  say("a moved nowhere", kp_launch_rebind(launch, "a", 0, &error));
}

int main(int count, char** words) {
  const char* const paths[] = {words[2], NULL};
  kp_options options = {sizeof options, words[1], paths + 1, 1, NULL};
  (void)count;
  say("a path that is NULL", kp_library_open(paths, 2, &options, &library, &error));
  say("a key that is NULL", kp_library_open(paths, 1, &options, &library, &error));
  options.trust = NULL;
  say("a count of no keys", kp_library_open(paths, 1, &options, &library, &error));
  options.trust_count = 0;
  say("open to nowhere", kp_library_open(paths, 1, &options, NULL, &error));
  say("open", kp_library_open(paths, 1, &options, &library, &error));
  say("select", pick());
  say("pack", pack());
  lack_pointers();
  lack_parts();
  lie();
  kp_launch_free(launch);
  kp_library_free(library);
  return 0;
}
