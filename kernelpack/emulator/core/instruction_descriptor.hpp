// The 32-bit instruction descriptor of tcgen05.mma (models/instruction_descriptor.py), and what the
// instruction allows (models/instruction_rules.py; PTX ISA 9.7.16.4.2, 9.7.16.2.1, 9.7.16.10.1-3).
#pragma once

#include "doubt.hpp"
#include "elements.hpp"

namespace kernelpack {

enum class MmaKind : uint8_t { F16, TF32, F8F6F4, MXF8F6F4, MXF4, MXF4NVF4 };

inline bool is_scaled(MmaKind kind) { return kind >= MmaKind::MXF8F6F4; }
inline bool has_nibbles(MmaKind kind) { return kind == MmaKind::MXF4 || kind == MmaKind::MXF4NVF4; }

// How an instruction is issued: its qualifiers, and where A is. `blocks`: scale factors a row.
struct MmaUse {
  MmaKind kind;
  bool is_pair, ws, a_in_tensor;
  int blocks;
  int cta_group() const { return is_pair ? 2 : 1; }
};

struct MmaInstruction {
  int m, n, k;
  Element a, b, scale;
  bool negate_a, negate_b, a_transposed, b_transposed;
  int a_scale_byte, b_scale_byte;
};

inline Element operand_type(MmaKind kind, uint32_t code) {
  if (kind == MmaKind::F16 && code <= 1) return code ? Element::BF16 : Element::FP16;
  if (kind == MmaKind::TF32 && code == 2) return Element::TF32;
  if (has_nibbles(kind) && code == 1) return Element::E2M1;
  if ((kind == MmaKind::F8F6F4 || kind == MmaKind::MXF8F6F4) && code <= 1)
    return code ? Element::E5M2 : Element::E4M3;
  doubt("a type of a matrix operand that is not modelled here");
}

// Tables 42 to 44. Whatever has another output than fp32 is a doubt.
inline void read_plain(uint32_t raw, const MmaUse& use, MmaInstruction& to) {
  to.m = (raw >> 24 & 0x1f) << 4;
  to.b = operand_type(use.kind, raw >> 10 & 7);
  if ((raw >> 4 & 3) != 1) doubt("an accumulator of another type than fp32");
  if (raw & (1u << 6 | 1u << 23 | 1u << 29 | 1u << 3 | 3u << 30))
    doubt("reserved bits of an instruction descriptor");
}

inline void read_scaled(uint32_t raw, const MmaUse& use, MmaInstruction& to) {
  const bool nibbles = has_nibbles(use.kind);
  to.m = (raw >> 27 & 3) << 7;
  to.b = operand_type(use.kind, raw >> 10 & (nibbles ? 3 : 7));
  to.scale = raw >> 23 & 1 ? Element::UE8M0 : Element::UE4M3;
  to.b_scale_byte = raw >> 4 & 3;
  to.a_scale_byte = raw >> 29 & 3;
  const uint32_t reserved =
      0b1011u | 1u << 6 | 7u << 24 | (nibbles ? 1u << 12 | 1u << 31 : 1u << 31);
  if (raw & reserved) doubt("reserved bits of an instruction descriptor");
}

inline void check_shape(const MmaInstruction& i, const MmaUse& use) {
  const int step = 8 * use.cta_group();
  const bool m_fits = use.ws ? i.m == 32 || i.m == 64 || i.m == 128
                      : is_scaled(use.kind) && !use.is_pair
                          ? i.m == 128
                          : i.m == 64 * use.cta_group() || i.m == 128 * use.cta_group();
  const bool n_fits =
      use.ws ? i.n == 64 || i.n == 128 || i.n == 256 : i.n > 0 && i.n <= 256 && i.n % step == 0;
  if (!m_fits || !n_fits) doubt("a shape that tcgen05.mma does not have");
  if (use.ws && (use.is_pair || is_scaled(use.kind)))
    doubt("a form that tcgen05.mma.ws does not have");
  if (use.a_in_tensor && (use.is_pair || i.m == 128) && i.n % (2 * step))
    doubt("a narrow N with A in tensor memory");
}

inline void check_types(const MmaInstruction& i, const MmaUse& use) {
  if (use.kind == MmaKind::F16 && i.a != i.b) doubt("fp16 times bf16");
  if ((i.a_transposed && bits_of(i.a) < 8) || (i.b_transposed && bits_of(i.b) < 8))
    doubt("transposed nibbles");
  if (i.b_transposed && bits_of(i.b) == 8 && i.n % (16 * use.cta_group()))
    doubt("N of a transposed 8-bit B");
  if (!is_scaled(use.kind)) return;
  const bool by_exponent = i.scale == Element::UE8M0;
  const bool fits = use.kind == MmaKind::MXF8F6F4 ? by_exponent && use.blocks == 1
                    : use.kind == MmaKind::MXF4
                        ? by_exponent && use.blocks == 2
                        : use.blocks == 4 || (by_exponent && use.blocks == 2);
  if (!fits || i.a_scale_byte % use.blocks || i.b_scale_byte % use.blocks)
    doubt("scale factors of no form");
}

// A descriptor that no rule speaks against.
inline MmaInstruction read_instruction(uint32_t raw, const MmaUse& use) {
  if (raw >> 2 & 1) doubt("a sparse tcgen05.mma");
  MmaInstruction found{};
  found.n = (raw >> 17 & 0x3f) << 3;
  found.a = operand_type(use.kind, raw >> 7 & 7);
  found.k = 256 / bits_of(found.a);
  found.negate_a = raw >> 13 & 1;
  found.negate_b = raw >> 14 & 1;
  found.a_transposed = raw >> 15 & 1;
  found.b_transposed = raw >> 16 & 1;
  if (is_scaled(use.kind))
    read_scaled(raw, use, found);
  else
    read_plain(raw, use, found);
  check_shape(found, use);
  check_types(found, use);
  return found;
}

// A pair with M = 128: quadrants 0-1 hold one half of B's scales and 2-3 the other.
inline bool halves_scales(const MmaInstruction& i, const MmaUse& use) {
  return use.is_pair && i.m == 128;
}

inline void check_scale_columns(const MmaInstruction& i, const MmaUse& use, uint32_t of_a,
                                uint32_t of_b) {
  if ((of_b & 0xffff) % 2 && !halves_scales(i, use)) doubt("scales of B at an odd column");
  if ((of_a & 0xffff) % (i.m / use.cta_group() / 32))
    doubt("scales of A at a column that is no multiple");
}

}  // namespace kernelpack
