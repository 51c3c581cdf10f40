// Functions of the device's library, to the bit: those that IEEE rounds, integers, bits, halves.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.cuh"

__global__ void compute(unsigned* out) {
    const int i = threadIdx.x;
    const float x = (i - 13) * 0.37f + 1e-3f * i * i;
    unsigned* mine = out + 10 * i;
    mine[0] = __float_as_uint(sqrtf(fabsf(x)));
    mine[1] = __float_as_uint(x / (i + 0.7f));
    mine[2] = __float_as_uint(fmaf(x, x, -0.1f));
    mine[3] = __float2int_rn(x * 100) ^ __popc(i * 0x9e3779b9u) << 20 ^ __clz(i) << 8;
    mine[4] = __umulhi(i * 0x12345678u, 0xdeadbeefu);
    mine[5] = __byte_perm(0x03020100 + i, 0x07060504, 0x5140);
    const __half2 h = __hfma2(__floats2half2_rn(x, -x), __floats2half2_rn(1.5f, 0.1f),
                              __floats2half2_rn(0.3f, 7.0f));
    mine[6] = *reinterpret_cast<const unsigned*>(&h);
    const __nv_bfloat162 b = __floats2bfloat162_rn(x, x * x);
    mine[7] = *reinterpret_cast<const unsigned*>(&b);
    const double d = sqrt(double(i) + 0.5) / 3;
    mine[8] = __double2hiint(d) ^ __double2loint(d);
    mine[9] = unsigned((i * 1234567ll - 99) / (i - 40)) + __brev(i) % 1000;
}

int main() {
    unsigned found[32][10], *out;
    CHECK(cudaMalloc(&out, sizeof(found)));
    compute<<<1, 32>>>(out);
    CHECK(cudaMemcpy(found, out, sizeof(found), cudaMemcpyDeviceToHost));
    for (const auto& row : found) {
        for (unsigned word : row) std::printf("%08x ", word);
        std::printf("\n");
    }
    return 0;
}
