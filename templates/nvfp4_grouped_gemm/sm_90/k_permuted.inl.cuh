// K-permuted dequantisation of a thread's two weights into MMA fragments: the four threads of a
// quad each take a quarter of a panel. Thread q has elements 16q to 16q + 15, which share a scale
// and lie in eight bytes. Step s of the MMA takes element 16q + 4s + 2h + j as its element 8h + 2q
// + j. Tokens use the same order.
struct ThreadRows {
    uint32_t first = first_row();  // of the two neighbours, in the tile
    uint32_t quarter = threadIdx.x % 4;

    // The offset, among a stage's codes, of the eight bytes of row `first + second`.
    __device__ __forceinline__ uint32_t codes(uint32_t second, uint32_t panel) const {
        constexpr uint32_t SPAN_PANELS = SPAN_K / PANEL_K;
        const uint32_t of_panel = panel % SPAN_PANELS * (PANEL_K / 2) + quarter * 8;
        return panel / SPAN_PANELS * CODE_SPAN_BYTES +
               swizzle<CODE_ROW_BYTES>((first + second) * CODE_ROW_BYTES + of_panel);
    }

    // The offset of their scale.
    __device__ __forceinline__ uint32_t scale(uint32_t second, uint32_t panel) const {
        return scale_offset(first + second, panel) + quarter;
    }
};

// A thread's weights of a panel.
class Panel {
  public:
    __device__ __forceinline__ Panel(const Shared& shared, uint32_t stage, const ThreadRows& rows,
                                     uint32_t panel) {
#pragma unroll
        for (uint32_t second = 0; second < 2; ++second) {
            codes[second] = ptx::load_shared_pair(shared.codes(stage) + rows.codes(second, panel));
            scales[second] =
                ptx::load_shared_byte(shared.scales(stage) + rows.scale(second, panel));
        }
    }

    // Dequantise the 16 codes of both rows into the fragments of all steps.
    __device__ __forceinline__ void dequantise(Fragments& a, uint32_t) const {
        const ScalePair of_rows(widen_scales(scales[0] << 4 | scales[1] << 20));
#pragma unroll
        for (uint32_t second = 0; second < 2; ++second) {
#pragma unroll
            for (uint32_t i = 0; i < 8; ++i) {
                const CodePair pick(i % 4);
                const uint32_t pair = pick(i < 4 ? codes[second].x : codes[second].y);
                a[i / 2 * 4 + i % 2 * 2 + second] = of_rows.times(second, pair);
            }
        }
    }

  private:
    uint2 codes[2];
    uint32_t scales[2];
};
