// printf of a kernel: the lines of one thread come in order.
#include "check.cuh"

__global__ void speak(int n, double x) {
    if (threadIdx.x != 3) return;
    for (int i = 0; i < n; ++i)
        printf("line %d of %d: %5.2f %s %c %x\n", i, n, x * i, "text", 'c', 255);
    printf("percent %% and %llu\n", 1ull << 40);
}

int main() {
    speak<<<1, 32>>>(3, 1.25);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
