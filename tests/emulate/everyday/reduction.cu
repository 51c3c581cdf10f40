// A sum in one launch: blocks write partial sums, and the last one to be done, as a counter says
// after a fence, adds them. Shuffles within a warp, shared memory between warps.
#include "check.cuh"

__device__ unsigned done;

__device__ float sum_of_block(float value) {
    __shared__ float of_warp[8];
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    value = threadIdx.x < 8 ? of_warp[threadIdx.x] : 0;
    for (int offset = 4; offset > 0; offset /= 2) {
        value += __shfl_down_sync(0xffffffff, value, offset);
    }
    return value;
}

__global__ void sum(const float* x, int n, volatile float* partial, float* out) {
    __shared__ bool is_last;
    float value = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) value += x[i];
    value = sum_of_block(value);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        is_last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    value = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
    __syncthreads();
    value = sum_of_block(value);
    if (threadIdx.x == 0) *out = value;
}

int main() {
    constexpr int N = 5000, BLOCKS = 6;
    float x[N], found, *device, *partial, *out;
    for (int i = 0; i < N; ++i) x[i] = 1.0f / (i + 1);
    CHECK(cudaMalloc(&device, sizeof(x)));
    CHECK(cudaMalloc(&partial, BLOCKS * sizeof(float)));
    CHECK(cudaMalloc(&out, sizeof(float)));
    CHECK(cudaMemcpy(device, x, sizeof(x), cudaMemcpyHostToDevice));
    for (int repeat = 0; repeat < 2; ++repeat) {
        sum<<<BLOCKS, 256>>>(device, N, partial, out);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&found, out, sizeof(found), cudaMemcpyDeviceToHost));
        std::printf("%a\n", found);
    }
    return 0;
}
