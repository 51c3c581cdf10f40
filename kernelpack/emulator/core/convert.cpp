// Conversion between numbers of one value a lane (PTX ISA 9.7.9.21; semantics/convert.py). Packed
// ones: convert_packed.cpp.
#include <cmath>

#include "convert_packed.hpp"
#include "floating.hpp"
#include "rounding.hpp"

namespace kernelpack {

namespace {

// What the steps of a conversion are; each instruction has one (`instr.plan`).
struct Conversion {
  // Lanes of the source as these, and of these to the destination: by type.
  void (*integers)(Warp&, const Slot&, int64_t (&)[WIDTH]) = nullptr;
  void (*doubles)(Warp&, const Slot&, double (&)[WIDTH]) = nullptr;
  void (*keep)(Warp&, const Slot&, const int64_t (&)[WIDTH], Mask) = nullptr;
  double (*whole)(double) = nullptr;
  Rounding mode = Rounding::NEAREST;
  bool is_unsigned_64 = false;  // the source
  bool flushes = false, saturates = false, cuts = false, makes_one_nan = false;
  bool is_half = false, is_bf16 = false;  // the destination has 16 bits
  int64_t least = 0;                      // of the destination
  uint64_t most = 0;
  int64_t of_nan = 0;
};

const Conversion& conversion(const Instr& instr) {
  return *static_cast<const Conversion*>(instr.plan.get());
}

template <typename T>
void integers_of(Warp& warp, const Slot& slot, int64_t (&out)[WIDTH]) {
  T room[WIDTH];
  const T* from = values(warp, slot, room);
  for (int lane = 0; lane < WIDTH; ++lane) out[lane] = static_cast<int64_t>(from[lane]);
}

template <typename T>
void keep_integers(Warp& warp, const Slot& slot, const int64_t (&in)[WIDTH], Mask mask) {
  T room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) room[lane] = static_cast<T>(in[lane]);
  put(warp, slot, room, mask);
}

// A function of a Conversion's by the name of an integer's type.
#define KERNELPACK_BY_ANY_INTEGER(name, OF) \
  ((name) == "u8"    ? OF<uint8_t>          \
   : (name) == "s8"  ? OF<int8_t>           \
   : (name) == "u16" ? OF<uint16_t>         \
   : (name) == "s16" ? OF<int16_t>          \
   : (name) == "u32" ? OF<uint32_t>         \
   : (name) == "s32" ? OF<int32_t>          \
   : (name) == "u64" ? OF<uint64_t>         \
                     : OF<int64_t>)

double number_of(uint16_t bits, F16) { return f16_to_f32(bits); }
double number_of(uint16_t bits, Bf16) { return bf16_to_f32(bits); }
double number_of(float value, float) { return value; }
double number_of(double value, double) { return value; }

template <typename T, typename As>
void doubles_of(Warp& warp, const Slot& slot, double (&out)[WIDTH]) {
  T room[WIDTH];
  const T* from = values(warp, slot, room);
  for (int lane = 0; lane < WIDTH; ++lane) out[lane] = number_of(from[lane], As());
}

void set_limits(Conversion& to, const std::string& type) {
  const int bits = width_of(type);
  if (type[0] == 's') {
    to.most = (uint64_t{1} << (bits - 1)) - 1;
    to.least = -static_cast<int64_t>(to.most) - 1;
  } else {
    to.most = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
    to.least = 0;
  }
}

// Integers to integers --------------------------------------------------------------------------

int64_t clamped_to(const Conversion& to, int64_t value) {
  if (to.is_unsigned_64 || value >= 0)
    return static_cast<int64_t>(std::min(static_cast<uint64_t>(value), to.most));
  return std::max(value, to.least);
}

void integer_to_integer(Warp& warp, const Instr& instr, Mask mask) {
  const Conversion& to = conversion(instr);
  int64_t lanes[WIDTH];
  to.integers(warp, instr.source(0), lanes);
  if (to.saturates)
    for (int64_t& value : lanes) value = clamped_to(to, value);
  to.keep(warp, instr.target(), lanes, mask);
}

template <typename D>
struct Cast {
  template <typename S>
  D operator()(S value) const {
    return static_cast<D>(value);
  }
};

// The conversions that kernels are full of.
Handler plain_cast(const std::string& to, const std::string& from) {
  const std::string both = to + "." + from;
  if (both == "u64.u32") return Each<Cast<uint64_t>, uint64_t, uint32_t>::run;
  if (both == "u32.u64") return Each<Cast<uint32_t>, uint32_t, uint64_t>::run;
  if (both == "s64.s32") return Each<Cast<int64_t>, int64_t, int32_t>::run;
  if (both == "u16.u32") return Always<Cast<uint16_t>, uint16_t, uint32_t>::run;
  if (both == "u32.u16") return Each<Cast<uint32_t>, uint32_t, uint16_t>::run;
  if (both == "f32.s32") return Each<Cast<float>, float, int32_t>::run;
  if (both == "f32.u32") return Each<Cast<float>, float, uint32_t>::run;
  return {};
}

// Integers to floats ----------------------------------------------------------------------------

// Exact as a double: integers of 32 bits at most.
float exact_to_f32(double value, Rounding mode) { return narrow({value, 0.0}, mode); }

float odd_to_f32(double value) {
  const float cut = exact_to_f32(value, Rounding::ZERO);
  return static_cast<double>(cut) == value ? cut : bits_as<float>(bits_as<uint32_t>(cut) | 1u);
}

// Integers of 64 bits are exact as they are: to f32 and f64 they are rounded once.
float integer_to_f32(const Conversion& to, int64_t value) {
  if (to.mode != Rounding::NEAREST) return exact_to_f32(static_cast<double>(value), to.mode);
  return to.is_unsigned_64 ? static_cast<float>(static_cast<uint64_t>(value))
                           : static_cast<float>(value);
}

void integer_to_f32(Warp& warp, const Instr& instr, Mask mask) {
  int64_t lanes[WIDTH];
  conversion(instr).integers(warp, instr.source(0), lanes);
  float room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane)
    room[lane] = integer_to_f32(conversion(instr), lanes[lane]);
  put(warp, instr.target(), room, mask);
}

void integer_to_f64(Warp& warp, const Instr& instr, Mask mask) {
  const Conversion& to = conversion(instr);
  int64_t lanes[WIDTH];
  to.integers(warp, instr.source(0), lanes);
  double room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane)
    room[lane] = to.is_unsigned_64 ? static_cast<double>(static_cast<uint64_t>(lanes[lane]))
                                   : static_cast<double>(lanes[lane]);
  put(warp, instr.target(), room, mask);
}

template <typename Half>
void integer_to_half(Warp& warp, const Instr& instr, Mask mask) {
  int64_t lanes[WIDTH];
  conversion(instr).integers(warp, instr.source(0), lanes);
  uint16_t room[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane)
    room[lane] = Half::encode(odd_to_f32(static_cast<double>(lanes[lane])));
  put(warp, instr.target(), room, mask);
}

// Null where a double does not hold every value and more than one rounding would come of it.
Run integer_to_float(const Conversion& of, const std::string& to, bool is_wide) {
  const bool is_directed = of.mode != Rounding::NEAREST;
  if (to == "f64") return integer_to_f64;
  if (is_wide && (is_directed || to != "f32")) return nullptr;
  if (to == "f32") return integer_to_f32;
  if (is_directed) return nullptr;
  return to == "f16" ? integer_to_half<F16> : integer_to_half<Bf16>;
}

bool prepare_from_integer(Instr& instr, const std::string& to, const std::string& from) {
  const Form& form = *instr.form;
  const bool is_directed = has_any(form, {"rz", "rm", "rp"});
  if (!form.has("sat") && !is_directed) {
    const Handler plain = plain_cast(to, from);
    if (plain.run) return prepared(instr, 1, plain);
  }
  auto made = std::make_shared<Conversion>();
  made->integers = KERNELPACK_BY_ANY_INTEGER(from, integers_of);
  made->is_unsigned_64 = from == "u64";
  made->saturates = form.has("sat");
  made->mode = rounding_of(form.one_of({"rn", "rz", "rm", "rp"}));
  instr.plan = made;
  if (is_integer(to)) {
    made->keep = KERNELPACK_BY_ANY_INTEGER(to, keep_integers);
    set_limits(*made, to);
    instr.run = integer_to_integer;
  } else {
    instr.run = integer_to_float(*made, to, width_of(from) == 64);
  }
  return instr.run && form.sources.size() == 1;
}

// Floats to integers ----------------------------------------------------------------------------

double to_nearest(double value) { return std::nearbyint(value); }
double to_zero(double value) { return std::trunc(value); }
double downward(double value) { return std::floor(value); }
double upward(double value) { return std::ceil(value); }

double (*whole_of(const Form& form))(double) {
  const std::string how = form.one_of({"rni", "rzi", "rmi", "rpi"});
  return how == "rni"   ? to_nearest
         : how == "rzi" ? to_zero
         : how == "rmi" ? downward
         : how == "rpi" ? upward
                        : nullptr;
}

// Rounded and clamped to the range.
int64_t integer_of(const Conversion& to, double value) {
  if (to.flushes) value = flush(static_cast<float>(value));
  value = to.whole(value);
  if (std::isnan(value)) return to.of_nan;
  const auto low = static_cast<double>(to.least), high = static_cast<double>(to.most);
  if (value >= high) return static_cast<int64_t>(to.most);
  if (value <= low) return to.least;
  return to.least < 0 ? static_cast<int64_t>(value)
                      : static_cast<int64_t>(static_cast<uint64_t>(value));
}

void float_to_integer(Warp& warp, const Instr& instr, Mask mask) {
  const Conversion& to = conversion(instr);
  double numbers[WIDTH];
  to.doubles(warp, instr.source(0), numbers);
  int64_t lanes[WIDTH] = {};
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    lanes[lane] = integer_of(to, numbers[lane]);
  }
  to.keep(warp, instr.target(), lanes, mask);
}

bool prepare_to_integer(Instr& instr, const std::string& to, const std::string& from) {
  const Form& form = *instr.form;
  if (form.has("ftz") && from == "f64") return false;
  auto made = std::make_shared<Conversion>();
  made->doubles = from == "f16"    ? doubles_of<uint16_t, F16>
                  : from == "bf16" ? doubles_of<uint16_t, Bf16>
                  : from == "f32"  ? doubles_of<float, float>
                                   : doubles_of<double, double>;
  made->keep = KERNELPACK_BY_ANY_INTEGER(to, keep_integers);
  made->whole = whole_of(form) ? whole_of(form) : to_zero;
  made->flushes = form.has("ftz");
  set_limits(*made, to);
  // 0, or the top bit alone where 64 bits are involved.
  const bool is_wide = from == "f64" || width_of(to) == 64;
  if (is_wide)
    made->of_nan = made->least < 0 ? made->least : static_cast<int64_t>(made->most / 2 + 1);
  instr.plan = made;
  instr.run = float_to_integer;
  return form.sources.size() == 1;
}

// Floats to floats ------------------------------------------------------------------------------

template <typename Half>
struct Widen {
  float operator()(uint16_t bits) const { return Half::decode(bits); }
};

// A NaN of f16 becomes the one NaN; that of bf16 keeps its bits.
struct WidenF16 {
  float operator()(uint16_t bits) const { return one_nan(f16_to_f32(bits)); }
};

template <typename Half>
struct Shorten {
  uint16_t operator()(float value) const { return Half::encode(value); }
};

// The steps between reading a float and writing one, in the source's own precision.
struct FloatSteps {
  double (*whole)(double);
  bool flushes, cuts, saturates, makes_one_nan;
  Rounding mode;
  bool to_zero;
  explicit FloatSteps(const Instr& instr) {
    const Form& form = *instr.form;
    whole = whole_of(form);
    flushes = form.has("ftz");
    cuts = form.has("relu");
    saturates = form.has("sat");
    makes_one_nan = form.types[0] == "f32" && (form.types[1] == "f16" || whole || flushes);
    mode = rounding_of(form.one_of({"rn", "rz", "rm", "rp"}));
    to_zero = mode == Rounding::ZERO;
  }
  float operator()(float value) const {
    if (flushes) value = flush(value);
    if (whole) value = static_cast<float>(whole(value));
    if (makes_one_nan) value = one_nan(value);
    if (cuts) value = relu(value);
    return saturates ? saturate(value) : value;
  }
  double operator()(double value) const {
    if (whole) value = whole(value);
    if (makes_one_nan) value = one_nan(value);
    if (cuts) value = std::isnan(value) ? value : value > 0.0 ? value : 0.0;
    return saturates ? saturate(value) : value;
  }
};

// Sources: what is stepped through is f32 but for f64.
float stepped(float value, float) { return value; }
double stepped(double value, double) { return value; }
float stepped(uint16_t bits, F16) { return f16_to_f32(bits); }
float stepped(uint16_t bits, Bf16) { return bf16_to_f32(bits); }

template <typename As>
struct ToSingle {
  FloatSteps steps;
  explicit ToSingle(const Instr& instr) : steps(instr) {}
  template <typename S>
  float operator()(S source) const {
    const auto value = steps(stepped(source, As()));
    if constexpr (std::is_same_v<As, double>) return narrow({value, 0.0}, steps.mode);
    return static_cast<float>(value);
  }
};

template <typename As>
struct ToDouble {
  FloatSteps steps;
  explicit ToDouble(const Instr& instr) : steps(instr) {}
  template <typename S>
  double operator()(S source) const {
    return static_cast<double>(steps(stepped(source, As())));
  }
};

// The sign and the top of the payload of an f64, quiet.
uint16_t cut_nan(double value, int exponent_bits) {
  const auto bits = bits_as<uint64_t>(value);
  const int fraction_bits = 15 - exponent_bits;
  const uint64_t exponent = ((uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  const uint64_t payload = bits << 12 >> (64 - fraction_bits);
  return static_cast<uint16_t>(bits >> 63 << 15 | exponent | payload |
                               uint64_t{1} << (fraction_bits - 1));
}

template <typename As, typename Half>
struct ToHalf {
  FloatSteps steps;
  explicit ToHalf(const Instr& instr) : steps(instr) {}
  template <typename S>
  uint16_t operator()(S source) const {
    const auto value = steps(stepped(source, As()));
    if constexpr (std::is_same_v<As, double>) {
      if (std::isnan(value)) return cut_nan(value, std::is_same_v<Half, F16> ? 5 : 8);
      return Half::encode(to_odd_f32({value, 0.0}));
    } else {
      return steps.to_zero ? cut_to_half(value, std::is_same_v<Half, F16>) : Half::encode(value);
    }
  }
};

template <typename As, typename S>
Handler float_to_float(const std::string& to) {
  if (to == "f64") return Seldom<ToDouble<As>, double, S>::run;
  if (to == "f32") return Seldom<ToSingle<As>, float, S>::run;
  if (to == "f16") return Seldom<ToHalf<As, F16>, uint16_t, S>::run;
  return Seldom<ToHalf<As, Bf16>, uint16_t, S>::run;
}

// What has no steps between is run as vectors.
Handler plain_float(const std::string& to, const std::string& from) {
  const std::string both = to + "." + from;
  if (both == "f32.f16") return Each<WidenF16, float, uint16_t>::run;
  if (both == "f32.bf16") return Each<Widen<Bf16>, float, uint16_t>::run;
  if (both == "f16.f32") return Always<Shorten<F16>, uint16_t, float>::run;
  if (both == "bf16.f32") return Always<Shorten<Bf16>, uint16_t, float>::run;
  return {};
}

bool is_modelled(const Form& form, const std::string& to, const std::string& from) {
  if (to != "f16" && to != "bf16") return true;
  if (form.has("satfinite") || has_any(form, {"rm", "rp"})) return false;
  return !(form.has("rz") && from == "f64");
}

bool prepare_to_float(Instr& instr, const std::string& to, const std::string& from) {
  const Form& form = *instr.form;
  if (!is_modelled(form, to, from) || (form.has("ftz") && from == "f64")) return false;
  const bool has_steps = whole_of(form) || has_any(form, {"ftz", "relu", "sat", "rz"});
  if (!has_steps && plain_float(to, from).run) return prepared(instr, 1, plain_float(to, from));
  if (from == "f16") return prepared(instr, 1, float_to_float<F16, uint16_t>(to));
  if (from == "bf16") return prepared(instr, 1, float_to_float<Bf16, uint16_t>(to));
  if (from == "f32") return prepared(instr, 1, float_to_float<float, float>(to));
  return prepared(instr, 1, float_to_float<double, double>(to));
}

bool is_number(const std::string& type) {
  return is_integer(type) || type == "f16" || type == "bf16" || type == "f32" || type == "f64";
}

bool prepare_conversion(Instr& instr) {
  const Form& form = *instr.form;
  if (form.types.size() != 2) return false;
  const std::string &to = form.types[0], &from = form.types[1];
  if (is_packed_conversion(to, from)) return prepare_packed_conversion(instr);
  if (!is_number(to) || !is_number(from) || form.targets.size() != 1) return false;
  if (has_any(form, {"rna", "rs", "scaled"})) return false;
  if (is_integer(from)) return prepare_from_integer(instr, to, from);
  return is_integer(to) ? prepare_to_integer(instr, to, from) : prepare_to_float(instr, to, from);
}

}  // namespace

#undef KERNELPACK_BY_ANY_INTEGER

ROW("cvt", prepare_conversion);

}  // namespace kernelpack
