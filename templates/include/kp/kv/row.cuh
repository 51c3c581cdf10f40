// Row formats of a KV cache: the layout of a token's row in bytes. The host has the same table in
// kernelpack/kernels/kv_operand/rows.py.
//
// A format has: Element (as raw bits), HEADS, HEAD_SIZE (elements of a head), WIDTH (values of a
// head), BYTES (of a row), INLINE_SCALES (fp32 scales inside the row, one for each INLINE_BLOCK
// values). An MLA row also has LATENT, and ROPE values of type Rope at byte ROPE_OFFSET.
#pragma once
#include <cuda/std/cstdint>

namespace kp::kv {

using Bf16 = uint16_t;  // raw bits: the toolkit's types take longer to compile than a kernel
using E4m3 = uint8_t;

// Heads of one element type, for attention with separate keys and values.
template <class ElementType, uint32_t HEAD_COUNT, uint32_t SIZE>
struct Dense {
    using Element = ElementType;
    static constexpr uint32_t HEADS = HEAD_COUNT, HEAD_SIZE = SIZE, WIDTH = SIZE;
    static constexpr uint32_t BYTES = HEADS * HEAD_SIZE * sizeof(Element);
    static constexpr uint32_t INLINE_SCALES = 0, INLINE_OFFSET = 0, INLINE_BLOCK = 1;
};

// The latent of MLA, then inline scales if INLINE is not 0, then rope values.
template <class ElementType, class RopeType, uint32_t ROPE_COUNT, uint32_t INLINE = 0>
struct MlaRow {
    using Element = ElementType;
    using Rope = RopeType;
    static constexpr uint32_t LATENT = 512, ROPE = ROPE_COUNT, WIDTH = LATENT + ROPE;
    static constexpr uint32_t INLINE_SCALES = INLINE, INLINE_OFFSET = LATENT * sizeof(Element);
    static constexpr uint32_t INLINE_BLOCK = INLINE ? LATENT / INLINE : 1;
    static constexpr uint32_t ROPE_OFFSET = INLINE_OFFSET + INLINE * sizeof(float);
    static constexpr uint32_t BYTES = ROPE_OFFSET + ROPE * sizeof(Rope);
    static constexpr uint32_t HEADS = 1, HEAD_SIZE = BYTES / sizeof(Element);
};

using Bf16_576 = MlaRow<Bf16, Bf16, 64>;
using Bf16_512 = MlaRow<Bf16, Bf16, 0>;
using Fp8_576 = MlaRow<E4m3, E4m3, 64>;
using Fp8_512 = MlaRow<E4m3, E4m3, 0>;
using Fp8_640 = MlaRow<E4m3, Bf16, 64>;     // rope divided by the row's scale
using Fp8_656 = MlaRow<E4m3, Bf16, 64, 4>;  // DeepSeek-V3.2's

static_assert(Bf16_576::BYTES == 1152 && Bf16_512::BYTES == 1024, "as the host has them");
static_assert(Fp8_576::BYTES == 576 && Fp8_512::BYTES == 512, "as the host has them");
static_assert(Fp8_640::BYTES == 640 && Fp8_640::ROPE_OFFSET == 512, "as the host has them");
static_assert(Fp8_656::BYTES == 656 && Fp8_656::ROPE_OFFSET == 528, "as the host has them");

}  // namespace kp::kv
