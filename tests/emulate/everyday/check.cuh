// What every program here begins with: a call that fails ends it, by name.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                   \
    do {                                                              \
        const cudaError_t status = (call);                            \
        if (status != cudaSuccess) {                                  \
            std::printf("%s: %s\n", #call, cudaGetErrorName(status)); \
            std::exit(1);                                             \
        }                                                             \
    } while (0)
