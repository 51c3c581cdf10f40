// Memory that host and device share: allocated, and a variable; the host reads what it waited for.
#include "check.cuh"

__managed__ int scale = 2;

__global__ void multiply(int* x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= scale;
    __syncthreads();
    if (threadIdx.x == 0) ++scale;
}

int main() {
    constexpr int N = 100;
    int* x;
    CHECK(cudaMallocManaged(&x, N * sizeof(int)));
    for (int i = 0; i < N; ++i) x[i] = i;
    for (int repeat = 0; repeat < 3; ++repeat) {
        multiply<<<1, 64>>>(x, N);
        CHECK(cudaDeviceSynchronize());
        std::printf("%d %d %d\n", x[1], x[99], scale);
        x[1] += 1000;
    }
    CHECK(cudaFree(x));
    return 0;
}
