// A stencil whose blocks meet between steps: by cooperative groups, and by a barrier of their own
// of atomics and fences.
#include <cooperative_groups.h>

#include "check.cuh"

constexpr int N = 512, STEPS = 4;

__device__ unsigned arrived;

struct ByGroups {
    __device__ void meet(int) const { cooperative_groups::this_grid().sync(); }
};

struct ByAtomics {
    __device__ void meet(int step) const {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&arrived, 1);
            while (atomicAdd(&arrived, 0) < (step + 1) * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
};

template <typename Barrier>
__global__ void smooth(int* from, int* to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < STEPS; ++step) {
        to[i] = from[i] * 3 + from[(i + 1) % N] + from[(i + N - 1) % N];
        Barrier().meet(step);
        int* const other = from;
        from = to;
        to = other;
    }
}

template <typename Barrier>
void run(const char* name) {
    int x[N], *device[2];
    for (int i = 0; i < N; ++i) x[i] = i * i % 17;
    for (int*& array : device) CHECK(cudaMalloc(&array, sizeof(x)));
    CHECK(cudaMemcpy(device[0], x, sizeof(x), cudaMemcpyHostToDevice));
    void* given[] = {&device[0], &device[1]};
    CHECK(cudaLaunchCooperativeKernel(smooth<Barrier>, dim3(4), dim3(N / 4), given));
    CHECK(cudaMemcpy(x, device[0], sizeof(x), cudaMemcpyDeviceToHost));
    std::printf("%s", name);
    for (int i = 0; i < N; i += 73) std::printf(" %d", x[i]);
    std::printf("\n");
}

int main() {
    run<ByGroups>("groups");
    run<ByAtomics>("atomics");
    return 0;
}
