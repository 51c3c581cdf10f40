// What CUDA answers to mistakes that it can see at once; none of them ends the program.
#include "check.cuh"

__global__ void nothing(int*) {}
__global__ void large(int* x) { *x = 1; }
__device__ int symbol;

void tell(const char* what, cudaError_t status) {
    const cudaError_t last = cudaGetLastError();
    std::printf("%s: %s, last %s\n", what, cudaGetErrorName(status), cudaGetErrorName(last));
}

cudaError_t launched(dim3 grid, dim3 block, size_t shared = 0) {
    nothing<<<grid, block, shared>>>(nullptr);
    return cudaPeekAtLastError();
}

int main() {
    char host[64] = {}, *device, *wrong = reinterpret_cast<char*>(0x1234);
    int count;
    CHECK(cudaMalloc(&device, 64));
    tell("fine", launched(1, 32));
    tell("2048 threads", launched(1, 2048));
    tell("no threads", launched(1, 0));
    tell("no blocks", launched(0, 32));
    tell("65 threads along z", launched(1, dim3(1, 1, 65)));
    tell("65536 blocks along y", launched(dim3(1, 65536), 32));
    tell("1 MiB of shared memory", launched(1, 32, 1 << 20));
    tell("50,000 bytes of shared memory", launched(1, 32, 50000));
    tell("no function", cudaLaunchKernel(nullptr, 1, 32, nullptr, 0, nullptr));
    tell("too large an attribute",
         cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    tell("a free of what was never given", cudaFree(wrong));
    tell("a free of null", cudaFree(nullptr));
    tell("a copy in no direction", cudaMemcpy(device, host, 64, cudaMemcpyKind(9)));
    tell("a copy of nothing", cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    tell("a 2-d copy wider than its pitch",
         cudaMemcpy2D(device, 4, host, 8, 8, 2, cudaMemcpyHostToDevice));
    tell("a symbol's end", cudaMemcpyToSymbol(symbol, host, 8));
    tell("memory for everybody", cudaMalloc(&device, size_t(1) << 60));
    tell("device 99", cudaSetDevice(99));
    tell("an unknown attribute", cudaDeviceGetAttribute(&count, cudaDeviceAttr(9999), 0));
    tell("no event", cudaEventRecord(nullptr));
    tell("a host pointer freed twice", cudaFreeHost(host));
    tell("fine again", launched(1, 32));
    tell("waited", cudaDeviceSynchronize());
    return 0;
}
