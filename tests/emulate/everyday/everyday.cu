// All programs of this folder in one: the first argument says which runs. Each is a program of its
// own as well, and was run as such on a GPU.
#include <cooperative_groups.h>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.cuh"

// clang-format off
#define PROGRAMS(DO) \
    DO(errors) DO(grid_barrier) DO(managed) DO(math) DO(printing) DO(reduction) DO(streams) \
    DO(transpose) DO(vector_add)
// clang-format on

namespace errors {
#include "errors.cu"
}
namespace grid_barrier {
#include "grid_barrier.cu"
}
namespace managed {
#include "managed.cu"
}
namespace math {
#include "math.cu"
}
namespace printing {
#include "printing.cu"
}
namespace reduction {
#include "reduction.cu"
}
namespace streams {
#include "streams.cu"
}
namespace transpose {
#include "transpose.cu"
}
namespace vector_add {
#include "vector_add.cu"
}

int main(int, char** words) {
#define RUN(name) \
    if (!std::strcmp(words[1], #name)) return name::main();
    PROGRAMS(RUN)
    return 2;
}
