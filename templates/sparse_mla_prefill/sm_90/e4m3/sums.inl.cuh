// A warpgroup's half of the output, 256 columns of V by HEADS (swap-AB): four MMAs of 64 columns,
// of which a warp has sixteen and a thread two neighbours: o[i][4j + 2h + q] is of column h and
// head 8j + 2 (lane % 4) + q.
constexpr uint32_t VALUE_ROWS = 64, VALUE_MMAS = HALF / VALUE_ROWS;
using Sums = float[VALUE_MMAS][4 * BLOCKS];

__device__ __forceinline__ void scale_sums(Sums& o, const PerHead& factors) {
#pragma unroll
    for (uint32_t mma = 0; mma < VALUE_MMAS; ++mma) {
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[mma][i] *= factors[i / 4 * 2 + i % 2];
    }
}
