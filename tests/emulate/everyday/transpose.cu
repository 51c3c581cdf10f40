// A tiled transpose through padded shared memory, of sides that tiles do not divide, and its bytes
// back through constant memory and a 2-d copy with a pitch.
#include "check.cuh"

__constant__ float factors[4];

__global__ void transpose(const float* from, size_t pitch, float* to, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) {
        if (x < columns && y + i < rows)
            tile[threadIdx.y + i][threadIdx.x] = from[(y + i) * pitch + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8) {
        if (x >= rows || y + i >= columns) continue;
        to[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i] * factors[(y + i) % 4];
    }
}

int main() {
    constexpr int ROWS = 45, COLUMNS = 70;
    const float given[4] = {1, -2, 0.5f, 3};
    float x[ROWS][COLUMNS], y[COLUMNS][ROWS], *from, *to;
    size_t pitch;
    for (int r = 0; r < ROWS; ++r) {
        for (int c = 0; c < COLUMNS; ++c) x[r][c] = r + 0.01f * c;
    }
    CHECK(cudaMemcpyToSymbol(factors, given, sizeof(given)));
    CHECK(cudaMallocPitch(&from, &pitch, sizeof(x[0]), ROWS));
    CHECK(cudaMalloc(&to, sizeof(y)));
    CHECK(cudaMemcpy2D(from, pitch, x, sizeof(x[0]), sizeof(x[0]), ROWS, cudaMemcpyHostToDevice));
    transpose<<<dim3(3, 2), dim3(32, 8)>>>(from, pitch / sizeof(float), to, ROWS, COLUMNS);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(y, to, sizeof(y), cudaMemcpyDeviceToHost));
    for (int i = 0; i < COLUMNS; i += 9) std::printf("%d %a %a\n", i, y[i][0], y[i][ROWS - 1]);
    return 0;
}
