// Two streams, of which one waits for an event of the other; asynchronous copies, a callback, and
// histograms by atomics in shared memory.
#include "check.cuh"

constexpr int N = 4096, BINS = 16;

__global__ void count(const unsigned char* x, int n, unsigned* bins) {
    __shared__ unsigned mine[BINS];
    if (threadIdx.x < BINS) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&mine[x[i] % BINS], 1);
    }
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void accumulate(unsigned* bins) {
    __shared__ unsigned sums[BINS];
    sums[threadIdx.x] = bins[threadIdx.x];
    for (int step = 1; step < BINS; step *= 2) {
        __syncthreads();
        const unsigned before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
    }
    bins[threadIdx.x] = sums[threadIdx.x];
}

int main() {
    unsigned char *x, *device;
    unsigned *bins, found[BINS];
    cudaStream_t first, second;
    cudaEvent_t counted;
    CHECK(cudaMallocHost(&x, N));
    for (int i = 0; i < N; ++i) x[i] = i * 7 / 3 % 251;
    CHECK(cudaMalloc(&device, N));
    CHECK(cudaMalloc(&bins, sizeof(found)));
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&counted, cudaEventDisableTiming));
    CHECK(cudaMemcpyAsync(device, x, N, cudaMemcpyHostToDevice, first));
    CHECK(cudaMemsetAsync(bins, 0, sizeof(found), first));
    count<<<4, 128, 0, first>>>(device, N, bins);
    CHECK(cudaEventRecord(counted, first));
    CHECK(cudaStreamWaitEvent(second, counted));
    accumulate<<<1, BINS, 0, second>>>(bins);
    CHECK(cudaMemcpyAsync(found, bins, sizeof(found), cudaMemcpyDeviceToHost, second));
    CHECK(cudaLaunchHostFunc(
        second, [](void* text) { std::puts(static_cast<char*>(text)); },
        const_cast<char*>("counted")));
    CHECK(cudaStreamSynchronize(second));
    for (unsigned bin : found) std::printf("%u ", bin);
    std::printf("\n%s\n", cudaGetErrorName(cudaStreamQuery(second)));
    return 0;
}
