// Comparison and selection (PTX ISA 9.7.6, 9.7.7; semantics/compare.py).
#include "floating.hpp"

namespace kernelpack {

namespace {

enum class Relation : uint8_t { NONE, EQ, NE, LT, LE, GT, GE, NUM, NOT_NUM };
enum class Combine : uint8_t { NONE, AND, OR, XOR };

// What a comparison is called; `equ` … are true for NaN.
struct Wanted {
  Relation relation = Relation::NONE;
  bool unordered = false;
};

Wanted relation_of(const std::string& name) {
  if (name == "eq" || name == "equ") return {Relation::EQ, name == "equ"};
  if (name == "ne" || name == "neu") return {Relation::NE, name == "neu"};
  if (name == "lt" || name == "ltu" || name == "lo") return {Relation::LT, name == "ltu"};
  if (name == "le" || name == "leu" || name == "ls") return {Relation::LE, name == "leu"};
  if (name == "gt" || name == "gtu" || name == "hi") return {Relation::GT, name == "gtu"};
  if (name == "ge" || name == "geu" || name == "hs") return {Relation::GE, name == "geu"};
  if (name == "num") return {Relation::NUM, false};
  if (name == "nan") return {Relation::NOT_NUM, false};
  return {};
}

// The one that is among a form's modifiers; none where there are two.
Wanted relation_of(const Form& form) {
  Wanted found;
  for (const std::string& modifier : form.modifiers) {
    const Wanted named = relation_of(modifier);
    if (named.relation == Relation::NONE) continue;
    if (found.relation != Relation::NONE) return {};
    found = named;
  }
  return found;
}

Combine combine_of(const Form& form) {
  for (const std::string& modifier : form.modifiers) {
    if (modifier == "and") return Combine::AND;
    if (modifier == "or") return Combine::OR;
    if (modifier == "xor") return Combine::XOR;
  }
  return Combine::NONE;
}

Mask combined(Combine how, Mask a, Mask b) {
  switch (how) {
    case Combine::AND: return a & b;
    case Combine::OR: return a | b;
    case Combine::XOR: return a ^ b;
    case Combine::NONE: break;
  }
  return a;
}

template <Relation R>
struct Holds {
  template <typename T>
  bool operator()(T a, T b) const {
    const bool is_nan = a != a || b != b;
    switch (R) {
      case Relation::EQ: return a == b;
      case Relation::NE: return std::is_floating_point_v<T> ? (a < b) | (a > b) : a != b;
      case Relation::LT: return a < b;
      case Relation::LE: return a <= b;
      case Relation::GT: return a > b;
      case Relation::GE: return a >= b;
      case Relation::NUM: return !is_nan;
      default: return is_nan;
    }
  }
};

// True also for NaN.
template <Relation R>
struct HoldsUnordered {
  template <typename T>
  bool operator()(T a, T b) const {
    return Holds<R>()(a, b) | (a != a) | (b != b);
  }
};

template <typename F>
struct Flushed {
  bool operator()(float a, float b) const { return F()(flush(a), flush(b)); }
};

template <typename F, typename Half>
struct Decoded {
  bool operator()(uint16_t a, uint16_t b) const { return F()(Half::decode(a), Half::decode(b)); }
};

// Which lanes a comparison of two sources holds in.
using Compare = Mask (*)(Warp&, const Slot&, const Slot&, Mask);

template <typename F, typename T>
struct IsOften : std::bool_constant<sizeof(T) == 4 || std::is_same_v<T, int64_t> ||
                                    std::is_same_v<T, uint64_t>> {};
template <typename F>
struct IsOften<Flushed<F>, float> : std::false_type {};

template <typename F, typename T>
Mask compare_lanes(Warp& warp, const Slot& first, const Slot& second, Mask mask) {
  const Source<T> a(warp, first), b(warp, second);
  Mask found = 0;
  if (!IsOften<F, T>() || __builtin_popcount(mask) <= FEW) {
    for (Mask left = mask; left; left &= left - 1) {
      const int lane = first_lane(left);
      found |= static_cast<Mask>(F()(a[lane], b[lane])) << lane;
    }
    return found;
  }
  for (int lane = 0; lane < WIDTH; ++lane)
    found |= static_cast<Mask>(F()(a[lane], b[lane])) << lane;
  return found;
}

template <typename F>
Compare compare_floats(const std::string& type, bool flushes) {
  if (type == "f32") return flushes ? compare_lanes<Flushed<F>, float> : compare_lanes<F, float>;
  if (type == "f64") return compare_lanes<F, double>;
  if (type == "f16") return compare_lanes<Decoded<F, F16>, uint16_t>;
  if (type == "bf16") return compare_lanes<Decoded<F, Bf16>, uint16_t>;
  return nullptr;
}

template <typename F>
Compare compare_numbers(const std::string& type, bool flushes) {
  const int width = width_of(type);
  if (type[0] == 's' && width == 16) return compare_lanes<F, int16_t>;
  if (type[0] == 's' && width == 32) return compare_lanes<F, int32_t>;
  if (type[0] == 's' && width == 64) return compare_lanes<F, int64_t>;
  if (type[0] == 'f' || type == "bf16") return compare_floats<F>(type, flushes);
  if (width == 16) return compare_lanes<F, uint16_t>;
  if (width == 32) return compare_lanes<F, uint32_t>;
  if (width == 64) return compare_lanes<F, uint64_t>;
  return nullptr;
}

// Numbers that are none are known of floats alone.
template <Relation R>
Compare compare_of(const std::string& type, bool unordered, bool flushes) {
  const bool is_float = type[0] == 'f' || type == "bf16";
  if (!is_float && (unordered || R == Relation::NUM || R == Relation::NOT_NUM)) return nullptr;
  if (unordered) return compare_floats<HoldsUnordered<R>>(type, flushes);
  return compare_numbers<Holds<R>>(type, flushes);
}

Compare comparison_of(const Form& form, const std::string& type) {
  const Wanted asked = relation_of(form);
  const bool flushes = form.has("ftz"), unordered = asked.unordered;
  switch (asked.relation) {
    case Relation::EQ: return compare_of<Relation::EQ>(type, unordered, flushes);
    case Relation::NE: return compare_of<Relation::NE>(type, unordered, flushes);
    case Relation::LT: return compare_of<Relation::LT>(type, unordered, flushes);
    case Relation::LE: return compare_of<Relation::LE>(type, unordered, flushes);
    case Relation::GT: return compare_of<Relation::GT>(type, unordered, flushes);
    case Relation::GE: return compare_of<Relation::GE>(type, unordered, flushes);
    case Relation::NUM: return compare_of<Relation::NUM>(type, unordered, flushes);
    case Relation::NOT_NUM: return compare_of<Relation::NOT_NUM>(type, unordered, flushes);
    case Relation::NONE: break;
  }
  return nullptr;
}

// instr.arg: the comparison, how it is combined, and whether there are two destinations.
struct Comparison {
  Compare compare;
  Combine combine;
  explicit Comparison(const Instr& instr)
      : compare(reinterpret_cast<Compare>(instr.arg[0])),
        combine(static_cast<Combine>(instr.arg[1])) {}
};

bool bind_comparison(Instr& instr, Compare compare) {
  const Form& form = *instr.form;
  const Combine combine = combine_of(form);
  if (!compare || form.sources.size() != (combine == Combine::NONE ? 2u : 3u)) return false;
  instr.arg[0] = reinterpret_cast<int64_t>(compare);
  instr.arg[1] = static_cast<int64_t>(combine);
  instr.slots[0] = form.targets[0].items[0];
  for (size_t i = 0; i < form.sources.size(); ++i) instr.slots[i + 1] = form.sources[i].items[0];
  return true;
}

void set_predicate(Warp& warp, const Instr& instr, Mask mask) {
  const auto compare = reinterpret_cast<Compare>(instr.arg[0]);
  const Mask found = compare(warp, slot_at(instr, 1), slot_at(instr, 2), mask);
  put_predicate(warp, slot_at(instr, 0), found, mask);
}

// p = a ? b combined with c, and q = its complement combined with c.
void set_predicates(Warp& warp, const Instr& instr, Mask mask) {
  const Comparison of(instr);
  const Mask found = of.compare(warp, slot_at(instr, 1), slot_at(instr, 2), mask);
  const Mask with = of.combine == Combine::NONE ? 0 : predicate(warp, slot_at(instr, 3));
  put_predicate(warp, slot_at(instr, 0), combined(of.combine, found, with), mask);
  if (instr.form->targets.size() > 1)
    put_predicate(warp, instr.target(1), combined(of.combine, ~found, with), mask);
}

bool prepare_set_predicate(Instr& instr) {
  const Form& form = *instr.form;
  const std::string& type = form.type();
  if (form.targets.size() > 2 || form.targets.empty() || type == "f16x2" || type == "bf16x2")
    return false;
  if (!bind_comparison(instr, comparison_of(form, type))) return false;
  const bool is_plain = form.targets.size() == 1 && instr.arg[1] == 0;
  instr.run = is_plain ? set_predicate : set_predicates;
  return true;
}

// All ones, or 1.0, where the comparison holds; else 0.
void set_value(Warp& warp, const Instr& instr, Mask mask) {
  const Comparison of(instr);
  const auto yes = static_cast<uint32_t>(instr.arg[2]);
  Mask found = of.compare(warp, slot_at(instr, 1), slot_at(instr, 2), mask);
  if (of.combine != Combine::NONE)
    found = combined(of.combine, found, predicate(warp, slot_at(instr, 3)));
  uint32_t room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) room[lane] = found >> lane & 1 ? yes : 0;
  put(warp, slot_at(instr, 0), room, mask);
}

bool prepare_set_value(Instr& instr) {
  const Form& form = *instr.form;
  if (form.types.size() != 2) return false;
  const std::string& to = form.types[0];
  if (to != "f32" && to != "u32" && to != "s32") return false;
  if (!bind_comparison(instr, comparison_of(form, form.types[1]))) return false;
  instr.arg[2] = to == "f32" ? 0x3f800000 : 0xffffffff;
  instr.run = set_value;
  return true;
}

struct Select {
  template <typename T>
  T operator()(T a, T b, uint32_t chosen) const {
    const auto bits = static_cast<T>(T{0} - static_cast<T>(chosen));
    return static_cast<T>((a & bits) | (b & ~bits));
  }
};

bool prepare_select(Instr& instr) {
#define SELECT(T) Each<Select, T, T, T, Bit>::run
  return prepared(instr, 3, KERNELPACK_BY_WIDTH(width_of(instr.form->type()), SELECT));
#undef SELECT
}

// a where c >= 0.
struct SelectBySign {
  template <typename T, typename C>
  T operator()(T a, T b, C c) const {
    return c >= 0 ? a : b;
  }
};

bool prepare_select_by_sign(Instr& instr) {
#define BY_INTEGER(T) Seldom<SelectBySign, T, T, T, int32_t>::run
#define BY_FLOAT(T) Seldom<SelectBySign, T, T, T, float>::run
  const Form& form = *instr.form;
  if (form.types.size() != 2) return false;
  const int width = width_of(form.types[0]);
  if (form.types[1] == "s32") return prepared(instr, 3, KERNELPACK_BY_WIDTH(width, BY_INTEGER));
  return form.types[1] == "f32" && prepared(instr, 3, KERNELPACK_BY_WIDTH(width, BY_FLOAT));
#undef BY_INTEGER
#undef BY_FLOAT
}

}  // namespace

ROW("setp", prepare_set_predicate);
ROW("set", prepare_set_value);
ROW("selp", prepare_select);
ROW("slct", prepare_select_by_sign);

}  // namespace kernelpack
