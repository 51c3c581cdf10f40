/* A call in C of each line, and what it came to.
 *
 *     c_refusals LIBCUDA    bundle TAB key or `-` TAB kernel TAB name=value … TAB name=address …
 * TAB number=value …
 *
 * A call that is served is `0`; another one its status, and the words of its error.
 */
#include <kernelpack/kernelpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 32

static kp_error* error;

static void put(const char* text) {
  for (; *text; ++text) {
    if (*text == '\n')
      fputs("\\n", stdout);
    else
      putchar(*text);
  }
}

/* As Python prints an error. */
static void say(kp_status status) {
  printf("%d ", status);
  if (*kp_error_where(error)) put(kp_error_where(error)), put(": ");
  put(kp_error_what(error));
  if (*kp_error_hint(error)) put("\nhint: "), put(kp_error_hint(error));
  printf("\n");
  kp_error_free(error);
  error = NULL;
}

/* The next word of a line, and the line after it. */
static char* word(char** line, const char* ends) {
  char* start = *line;
  char* end = start + strcspn(start, ends);
  *line = *end ? end + 1 : end;
  *end = 0;
  return start;
}

static kp_status call(const char* libcuda, char* line) {
  const char* const path[] = {word(&line, "\t")};
  const char* const key[] = {word(&line, "\t")};
  const char* kernel = word(&line, "\t");
  char *sizes_text = word(&line, "\t"), *addresses_text = word(&line, "\t"),
       *numbers_text = word(&line, "\n");
  kp_size sizes[MOST];
  kp_address addresses[MOST];
  kp_number numbers[MOST];
  size_t size_count = 0, address_count = 0, number_count = 0;
  for (; *sizes_text; ++size_count) {
    sizes[size_count].name = word(&sizes_text, "=");
    sizes[size_count].value = strtoll(word(&sizes_text, " "), NULL, 0);
  }
  for (; *addresses_text; ++address_count) {
    addresses[address_count].name = word(&addresses_text, "=");
    addresses[address_count].address = strtoull(word(&addresses_text, " "), NULL, 0);
  }
  for (; *numbers_text; ++number_count) {
    numbers[number_count].name = word(&numbers_text, "=");
    numbers[number_count].value = strtod(word(&numbers_text, " "), NULL);
  }
  const int is_trusted_only = strcmp(key[0], "-") != 0;
  kp_options options = {sizeof options, libcuda, is_trusted_only ? key : NULL,
                        (size_t)is_trusted_only, NULL};
  kp_problem problem = {sizeof problem, kernel, sizes, size_count, 0, 0, 0};
  kp_arguments arguments = {sizeof arguments, addresses,   address_count, NULL,
                            numbers,          number_count};
  kp_library* library = NULL;
  const kp_variant* variant = NULL;
  kp_launch* launch = NULL;
  kp_status status = kp_library_open(path, 1, &options, &library, &error);
  if (!status) status = kp_select(library, &problem, &variant, &error);
  if (!status) status = kp_launch_pack(library, variant, &problem, &arguments, &launch, &error);
  say(status);
  kp_launch_free(launch);
  kp_library_free(library);
  return status;
}

int main(int count, char** words) {
  static char line[1 << 16];
  while (count > 1 && fgets(line, sizeof line, stdin)) call(words[1], line);
  return 0;
}
