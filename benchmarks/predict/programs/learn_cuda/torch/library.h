// In place of torch's header: what the sources use of it, a macro and others' headers.
#pragma once
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#define TORCH_CHECK(condition, message)        \
  do {                                         \
    if (!(condition)) {                        \
      std::fprintf(stderr, "%s\n", (message)); \
      std::exit(2);                            \
    }                                          \
  } while (false)
