// Conversions to and from pairs of numbers, and to tf32 (PTX ISA 9.7.9.21; formats/convert.py).
#include "convert_packed.hpp"

#include <array>

#include "floating.hpp"
#include "narrow.hpp"

namespace kernelpack {

namespace {

const Layout* narrow_layout(const std::string& type) {
  return type == "e4m3x2"   ? &E4M3
         : type == "e5m2x2" ? &E5M2
         : type == "e2m3x2" ? &E2M3
         : type == "e3m2x2" ? &E3M2
         : type == "e2m1x2" ? &E2M1
                            : nullptr;
}

// The field that each number of a pair has in its register.
int field_of(const Layout& layout) { return &layout == &E2M1 || layout.sign == E2M1.sign ? 4 : 8; }

// How a pair of 16-bit numbers is made from f32: a is the upper one.
template <typename Half>
struct PackHalves {
  uint32_t operator()(float a, float b) const {
    return static_cast<uint32_t>(Half::encode(a)) << 16 | Half::encode(b);
  }
};

template <typename Half>
struct PackHalvesWithFlags {
  bool satfinite, cuts, to_zero;
  explicit PackHalvesWithFlags(const Instr& instr)
      : satfinite(instr.form->has("satfinite")),
        cuts(instr.form->has("relu")),
        to_zero(instr.form->has("rz")) {}
  uint32_t one(float value) const {
    const Layout& layout = std::is_same_v<Half, F16> ? FP16 : BF16;
    return encode_by(layout, cuts ? cut_below_zero(value) : value,
                     to_zero ? Cut::ZERO : Cut::NEAREST, satfinite);
  }
  uint32_t operator()(float a, float b) const { return one(a) << 16 | one(b); }
};

// How a pair of a narrow format is made; a is the upper number.
struct PackNarrow {
  Layout layout;
  uint32_t field;
  bool satfinite, cuts;
  explicit PackNarrow(const Instr& instr)
      : layout(*narrow_layout(instr.form->types[0])),
        field(static_cast<uint32_t>(field_of(layout))),
        satfinite(instr.form->has("satfinite")),
        cuts(instr.form->has("relu")) {}
  uint32_t one(float value) const { return encode_nearest(layout, value, satfinite); }
  uint32_t operator()(float a, float b) const { return one(a) << field | one(b); }
};

// Pairs as words, which become vectors; shortened to registers of D after that.
template <typename D>
void put_pairs(Warp& warp, const Instr& instr, const float* a, const float* b, Mask mask) {
  const PackNarrow pack = *static_cast<const PackNarrow*>(instr.plan.get());
  float upper[WIDTH], lower[WIDTH];
  uint32_t words[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) {
    upper[lane] = pack.cuts ? cut_below_zero(a[lane]) : a[lane];
    lower[lane] = pack.cuts ? cut_below_zero(b[lane]) : b[lane];
  }
  for (int lane = 0; lane < WIDTH; ++lane) words[lane] = pack(upper[lane], lower[lane]);
  D room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) room[lane] = static_cast<D>(words[lane]);
  put(warp, slot_at(instr, 0), room, mask);
}

// From two f32.
template <typename D>
void pack_narrow(Warp& warp, const Instr& instr, Mask mask) {
  const Source<float> a(warp, slot_at(instr, 1)), b(warp, slot_at(instr, 2));
  put_pairs<D>(warp, instr, a.lanes, b.lanes, mask);
}

// From a pair of 16-bit numbers.
template <typename D, typename Half>
void repack_narrow(Warp& warp, const Instr& instr, Mask mask) {
  const Source<uint32_t> pairs(warp, slot_at(instr, 1));
  float a[WIDTH], b[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) {
    a[lane] = Half::decode(static_cast<uint16_t>(pairs[lane] >> 16));
    b[lane] = Half::decode(static_cast<uint16_t>(pairs[lane]));
  }
  put_pairs<D>(warp, instr, a, b, mask);
}

// What becomes of each code of a narrow format as f16.
using Halves = std::array<uint16_t, 256>;

Halves widened_codes(const Layout& layout, bool cuts) {
  Halves all{};
  for (uint32_t code = 0; code < all.size(); ++code) {
    const float value = decode_narrow(layout, code & (2 * layout.sign - 1));
    all[code] = f32_to_f16(cuts ? cut_below_zero(value) : value);
  }
  return all;
}

// A pair of codes as a pair of f16.
template <typename S>
void widen_narrow(Warp& warp, const Instr& instr, Mask mask) {
  const Source<S> from(warp, slot_at(instr, 1));
  const Halves& all = *static_cast<const Halves*>(instr.plan.get());
  const int field = sizeof(S) == 1 ? 4 : 8;
  const uint32_t kept = (1u << field) - 1;
  uint32_t room[WIDTH];
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const uint32_t pair = from[lane];
    room[lane] = all[pair & kept] | static_cast<uint32_t>(all[pair >> field & kept]) << 16;
  }
  put(warp, slot_at(instr, 0), room, mask);
}

struct ToTf32 {
  bool satfinite, cuts, is_away;
  Cut cut;
  explicit ToTf32(const Instr& instr)
      : satfinite(instr.form->has("satfinite")),
        cuts(instr.form->has("relu")),
        is_away(instr.form->has("rna")),
        cut(is_away                 ? Cut::NEAREST_AWAY
            : instr.form->has("rz") ? Cut::ZERO
                                    : Cut::NEAREST) {}
  uint32_t operator()(float value) const {
    if (std::isnan(value) && is_away)
      return (bits_as<uint32_t>(value) & 0xffffe000u) - (satfinite ? 0x2000u : 0u);
    return encode_by(TF32, cuts ? cut_below_zero(value) : value, cut, satfinite);
  }
};

// Two exponents.
struct PackExponents {
  bool up, satfinite;
  explicit PackExponents(const Instr& instr)
      : up(instr.form->has("rp")), satfinite(instr.form->has("satfinite")) {}
  uint16_t operator()(float a, float b) const {
    return static_cast<uint16_t>(encode_exponent(a, up, satfinite) << 8 |
                                 encode_exponent(b, up, satfinite));
  }
  uint16_t operator()(uint32_t pair) const {
    return (*this)(bf16_to_f32(static_cast<uint16_t>(pair >> 16)),
                   bf16_to_f32(static_cast<uint16_t>(pair)));
  }
};

struct WidenExponents {
  uint32_t operator()(uint16_t pair) const {
    return static_cast<uint32_t>(f32_to_bf16(decode_exponent(pair >> 8))) << 16 |
           f32_to_bf16(decode_exponent(pair & 0xff));
  }
};

bool is_nearest(const Form& form) { return !has_any(form, {"rz", "rm", "rp", "rna", "rs"}); }

template <typename Half>
bool prepare_pair(Instr& instr) {
  const Form& form = *instr.form;
  if (has_any(form, {"rm", "rp", "rna", "rs"})) return false;
  if (has_any(form, {"satfinite", "relu", "rz"}))
    return prepared(instr, 2, Seldom<PackHalvesWithFlags<Half>, uint32_t, float, float>::run);
  return prepared(instr, 2, Each<PackHalves<Half>, uint32_t, float, float>::run);
}

template <typename D>
bool prepare_to_narrow(Instr& instr, const std::string& from) {
  instr.plan = std::make_shared<PackNarrow>(instr);
  if (from == "f32") return prepared(instr, 2, pack_narrow<D>);
  return prepared(instr, 1, from == "f16x2" ? repack_narrow<D, F16> : repack_narrow<D, Bf16>);
}

bool prepare_from_narrow(Instr& instr, const Layout& layout) {
  instr.plan = std::make_shared<Halves>(widened_codes(layout, instr.form->has("relu")));
  return prepared(instr, 1, field_of(layout) == 4 ? widen_narrow<uint8_t> : widen_narrow<uint16_t>);
}

bool prepare_exponents(Instr& instr, const std::string& from) {
  const Form& form = *instr.form;
  if (form.one_of({"rz", "rp"}).empty() || has_any(form, {"relu", "rn", "rm", "rna"})) return false;
  if (from == "f32") return prepared(instr, 2, Seldom<PackExponents, uint16_t, float, float>::run);
  return prepared(instr, 1, Seldom<PackExponents, uint16_t, uint32_t>::run);
}

bool is_pair_of_halves(const std::string& type) { return type == "f16x2" || type == "bf16x2"; }

}  // namespace

uint16_t cut_to_half(float value, bool is_f16) {
  return static_cast<uint16_t>(encode_by(is_f16 ? FP16 : BF16, value, Cut::ZERO, false));
}

bool is_packed_conversion(const std::string& to, const std::string& from) {
  if (from == "f32")
    return is_pair_of_halves(to) || to == "tf32" || narrow_layout(to) || to == "ue8m0x2";
  if (is_pair_of_halves(from)) return narrow_layout(to) || (from == "bf16x2" && to == "ue8m0x2");
  return (to == "f16x2" && narrow_layout(from)) || (to == "bf16x2" && from == "ue8m0x2");
}

bool prepare_packed_conversion(Instr& instr) {
  const Form& form = *instr.form;
  const std::string &to = form.types[0], &from = form.types[1];
  if (has_any(form, {"scaled", "rs", "ftz", "sat"})) return false;
  if (to == "ue8m0x2") return prepare_exponents(instr, from);
  if (to == "tf32")
    return !has_any(form, {"rm", "rp"}) && prepared(instr, 1, Seldom<ToTf32, uint32_t, float>::run);
  if (is_pair_of_halves(to) && from == "f32")
    return to == "f16x2" ? prepare_pair<F16>(instr) : prepare_pair<Bf16>(instr);
  if (!is_nearest(form)) return false;
  if (narrow_layout(from)) return prepare_from_narrow(instr, *narrow_layout(from));
  if (from == "ue8m0x2")
    return !form.has("relu") && prepared(instr, 1, Seldom<WidenExponents, uint32_t, uint16_t>::run);
  return to == "e2m1x2" ? prepare_to_narrow<uint8_t>(instr, from)
                        : prepare_to_narrow<uint16_t>(instr, from);
}

}  // namespace kernelpack
