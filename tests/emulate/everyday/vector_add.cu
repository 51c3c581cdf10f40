// c = a + b, as the first page of every CUDA book has it; the tail of the last block is masked.
#include "check.cuh"

__global__ void add(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main() {
    constexpr int N = 1000;
    float a[N], b[N], c[N], *device[3];
    for (int i = 0; i < N; ++i) a[i] = 0.1f * i, b[i] = 1.0f / (i + 1);
    for (float*& array : device) CHECK(cudaMalloc(&array, sizeof(a)));
    CHECK(cudaMemcpy(device[0], a, sizeof(a), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device[1], b, sizeof(b), cudaMemcpyHostToDevice));
    add<<<(N + 255) / 256, 256>>>(device[0], device[1], device[2], N);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c, device[2], sizeof(c), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i += 111) std::printf("%d %a\n", i, c[i]);
    for (float* array : device) CHECK(cudaFree(array));
    return 0;
}
