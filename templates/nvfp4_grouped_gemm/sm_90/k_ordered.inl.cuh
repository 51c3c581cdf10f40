// K-ordered dequantisation of a thread's two weights into MMA fragments: step s of a panel is
// elements 16s to 16s + 15, which share a scale. A thread uses the same byte of every word of eight
// codes. All four threads of a quad need each scale, so transform warps widen the scales
// beforehand.
struct ThreadRows {
    uint32_t first = first_row();          // of the two neighbours, in the tile
    CodePair pick{threadIdx.x % 4};  // the byte of a word that is this thread's

    // The offset, among a stage's codes, of 16 bytes of row `first + second`: two steps of K.
    __device__ __forceinline__ uint32_t codes(uint32_t second, uint32_t chunk) const {
        constexpr uint32_t CHUNKS = CODE_ROW_BYTES / 16;
        const uint32_t of_span = (first + second) * CODE_ROW_BYTES + chunk % CHUNKS * 16;
        return chunk / CHUNKS * CODE_SPAN_BYTES + swizzle<CODE_ROW_BYTES>(of_span);
    }
};

// A thread's weights of a panel.
class Panel {
  public:
    __device__ __forceinline__ Panel(const Shared& shared, uint32_t stage, const ThreadRows& rows,
                                     uint32_t panel)
        : codes(shared.codes(stage)), rows(rows), panel(panel) {
#pragma unroll
        for (uint32_t second = 0; second < 2; ++second) {
            scales[second] = ptx::load_shared_pair(shared.wide_scales(stage) +
                                                   wide_scale_offset(rows.first + second, panel));
        }
    }

    // Dequantise GROUP_STEPS x 16 codes of both rows into fragments, from step `step` on.
    __device__ __forceinline__ void dequantise(Fragments& a, uint32_t step) const {
#pragma unroll
        for (uint32_t second = 0; second < 2; ++second) {
#pragma unroll
            for (uint32_t i = 0; i < GROUP_STEPS; i += 2) {
                const uint32_t chunk = (panel * STEPS + step + i) / 2;
                const uint4 words = ptx::load_shared_words(codes + rows.codes(second, chunk));
                uint32_t* to = a + 4 * i + second;
                to[0] = times(second, step + i, words.x);
                to[2] = times(second, step + i, words.y);
                to[4] = times(second, step + i + 1, words.z);
                to[6] = times(second, step + i + 1, words.w);
            }
        }
    }

  private:
    // This thread's codes of a word, times the scale of a step.
    __device__ __forceinline__ uint32_t times(uint32_t second, uint32_t step,
                                              uint32_t word) const {
        const ScalePair pair(step % 2 ? scales[second].y : scales[second].x);
        return pair.times(step / 2, rows.pick(word));
    }

    uint32_t codes;
    const ThreadRows& rows;
    uint32_t panel;
    uint2 scales[2];  // of steps 0 and 2, and of 1 and 3
};
