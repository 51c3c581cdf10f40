// Integer expressions, as a bundle holds them: postfix code over signed 64-bit integers.
//
// Division and modulo round toward minus infinity, as Python's do. A result outside 64 bits and a
// zero divisor are errors. The stack is a fixed array: code was checked against it when it was
// read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format.hpp"
#include "result.hpp"
#include "targets.hpp"
#include "text.hpp"

namespace kernelpack {

/// The sizes of a problem, by name: `{{"m", 128}, {"k", 4096}}`.
using Sizes = std::vector<std::pair<std::string_view, std::int64_t>>;

namespace detail {

// clang-format off
enum class Op : std::uint8_t {
  kConstant, kName, kAdd, kSubtract, kMultiply, kDivide, kModulo, kNegate,
  kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual, kAnd, kOr, kNot,
  kSelect,     // condition, then, else
  kMin, kMax,
  kDivideUp,   // rounds up
  kAlignUp,    // the next multiple
  kPowerFloor,  // the largest power of two that is not larger; of a positive number
  kFittingClusters,  // clusters of so many CTAs that run at once; of a positive number
  kFittingCtas,  // the most CTAs of a cluster so that so many run at once, or 1
  kMostParts,  // vectors and CTAs: the most vectors that one CTA takes of the others'
  kAlignDown   // the next lower multiple
};
// clang-format on
constexpr std::uint32_t kOps = 27;

/// How many operands an operation takes.
constexpr std::uint32_t arity(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kName: return 0;
    case Op::kNegate:
    case Op::kNot:
    case Op::kPowerFloor:
    case Op::kFittingClusters:
    case Op::kFittingCtas: return 1;
    case Op::kSelect: return 3;
    default: return 2;
  }
}

/// Whether an operation asks the device, which only a launch can.
constexpr bool asks(Op op) { return op == Op::kFittingClusters || op == Op::kFittingCtas; }

/// An operation; its operand is a constant, or the place of a name among the kernel's.
struct Step {
  Op op;
  std::int64_t operand;
};

/// An expression: its text, for messages, and its code, which never holds more than `kMaxDepth`
/// values, takes none that it does not hold, and leaves one.
struct Expression {
  std::string_view text;
  std::vector<Step> code;

  /// The value where the expression depends on no name and no device, and has one.
  std::optional<std::int64_t> constant() const;
};

/// How many clusters of so many CTAs run at once.
using Fitting = std::function<Result<std::int64_t>(std::int64_t)>;

/// The names that expressions of one kernel use, and what a problem says of each; and what the
/// device says of a launch, where that is known.
class Values {
public:
  Values(const std::vector<std::string_view>& names, const Sizes& sizes)
      : names_(names), sizes_(sizes), known_(names.size()) {
    for (std::size_t place = 0; place < names.size(); ++place)
      for (const auto& [name, value] : sizes)
        if (name == names[place]) known_[place] = value;
  }

  /// The same of a launch, whose clusters the device is asked about; it must outlive this.
  Values(const Values& values, const Fitting& fitting) : Values(values) { fitting_ = &fitting; }

  const Fitting* fitting() const { return fitting_; }

  Result<std::int64_t> at(std::int64_t place, const Expression& expression) const {
    if (const auto& known = known_[static_cast<std::size_t>(place)]) return *known;
    const std::string_view name = names_[static_cast<std::size_t>(place)];
    const auto show = [](const auto& size) { return std::string(size.first); };
    return Error{ErrorKind::kExpression,
                 expression.text == name ? quoted(name) + " is not given"
                                         : quoted(expression.text) + " needs " + quoted(name),
                 {},
                 "known: " + joined(sizes_, show)};
  }

private:
  const std::vector<std::string_view>& names_;
  const Sizes& sizes_;
  std::vector<std::optional<std::int64_t>> known_;
  const Fitting* fitting_ = nullptr;
};

/// The most CTAs of a cluster so that `clusters` of them run at once; 1 where none does.
inline Result<std::int64_t> fitting_ctas(const Fitting& fitting, std::int64_t clusters) {
  std::int64_t ctas = 1;
  for (; ctas < kMostCluster; ++ctas) {
    KERNELPACK_TRY(count, fitting(ctas + 1));
    if (count < clusters) break;
  }
  return ctas;
}

/// a modulo b, with the sign of b; b is not 0.
constexpr std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;  // the processor cannot divide -2^63 by -1
  const std::int64_t rest = a % b;
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// a / b, rounded down; whether it does not fit. b is not 0.
inline bool divide(std::int64_t a, std::int64_t b, std::int64_t* result) {
  if (b == -1) return __builtin_sub_overflow(std::int64_t{0}, a, result);
  *result = a / b - (a % b && (a < 0) != (b < 0));
  return false;
}

/// Of a split sum's vectors, the most that one of up to `ctas` CTAs takes from the others.
inline bool most_parts(std::int64_t vectors, std::int64_t ctas, std::int64_t* result) {
  *result = 0;
  for (std::int64_t split = 2; split <= ctas; ++split) {
    const std::int64_t share = vectors / split + (vectors % split != 0);
    std::int64_t parts = 0;
    if (__builtin_mul_overflow(split - 1, share, &parts)) return true;
    if (parts > *result) *result = parts;
  }
  return false;
}

/// What an operation of two operands gives; whether it does not fit. No divisor is 0.
inline bool apply(Op op, std::int64_t a, std::int64_t b, std::int64_t* result) {
  switch (op) {
    case Op::kAdd: return __builtin_add_overflow(a, b, result);
    case Op::kSubtract: return __builtin_sub_overflow(a, b, result);
    case Op::kMultiply: return __builtin_mul_overflow(a, b, result);
    case Op::kDivide: return divide(a, b, result);
    case Op::kModulo: *result = modulo(a, b); return false;
    case Op::kLess: *result = a < b; return false;
    case Op::kLessEqual: *result = a <= b; return false;
    case Op::kEqual: *result = a == b; return false;
    case Op::kNotEqual: *result = a != b; return false;
    case Op::kGreater: *result = a > b; return false;
    case Op::kGreaterEqual: *result = a >= b; return false;
    case Op::kAnd: *result = a && b; return false;
    case Op::kOr: *result = a || b; return false;
    case Op::kMin: *result = b < a ? b : a; return false;
    case Op::kMax: *result = b > a ? b : a; return false;
    case Op::kDivideUp:
      return divide(a, b, result) || (modulo(a, b) && __builtin_add_overflow(*result, 1, result));
    case Op::kMostParts: return most_parts(a, b, result);
    case Op::kAlignDown: return __builtin_sub_overflow(a, modulo(a, b), result);
    default: {  // kAlignUp
      const std::int64_t over = modulo(a, b);
      return __builtin_add_overflow(a, over ? b - over : 0, result);
    }
  }
}

constexpr bool divides(Op op) {
  return op == Op::kDivide || op == Op::kModulo || op == Op::kDivideUp || op == Op::kAlignUp ||
         op == Op::kAlignDown;
}

inline Error expression_error(std::string what) {
  return {ErrorKind::kExpression, std::move(what)};
}

inline Result<std::int64_t> apply_one(const Expression& expression, Op op, std::int64_t a) {
  std::int64_t result = !a;
  if (op == Op::kNegate && __builtin_sub_overflow(std::int64_t{0}, a, &result))
    return expression_error(quoted(expression.text) + " does not fit in 64 bits");
  if (op == Op::kPowerFloor) {
    if (a <= 0)
      return expression_error("pow2_floor of " + decimal(a) + ": needs a positive number");
    result = std::int64_t{1} << (63 - __builtin_clzll(static_cast<unsigned long long>(a)));
  }
  return result;
}

/// What the device says of clusters of `a` CTAs, or of `a` clusters.
inline Result<std::int64_t> ask(const Expression& expression, Op op, std::int64_t a,
                                const Fitting* fitting) {
  if (!fitting)
    return Error{ErrorKind::kExpression,
                 quoted(expression.text) + " asks how many clusters fit, which only a launch knows",
                 {},
                 "a grid, a cluster and a scalar parameter may ask"};
  if (a < 1)
    return expression_error(quoted(expression.text) + " asks of " + decimal(a) +
                            ": needs a positive number");
  return op == Op::kFittingClusters ? (*fitting)(a) : fitting_ctas(*fitting, a);
}

inline Result<std::int64_t> apply_two(const Expression& expression, Op op, std::int64_t a,
                                      std::int64_t b) {
  std::int64_t result = 0;
  if (divides(op) && !b) return expression_error(quoted(expression.text) + " divides by zero");
  if (op == Op::kMostParts && (a < 0 || b < 1 || b > kMostCluster))
    return expression_error("most_parts of " + decimal(a) + " vectors and " + decimal(b) +
                            " CTAs: needs 0 or more, and 1 to " + decimal(kMostCluster));
  if (apply(op, a, b, &result))
    return expression_error(quoted(expression.text) + " does not fit in 64 bits");
  return result;
}

/// The value of an expression.
inline Result<std::int64_t> evaluate(const Expression& expression, const Values& values) {
  std::int64_t stack[kMaxDepth];
  std::int64_t* top = stack;  // one past the value pushed last
  for (const auto& [op, operand] : expression.code) {
    switch (arity(op)) {
      case 0:
        if (op == Op::kConstant) {
          *top++ = operand;
        } else {
          KERNELPACK_TRY(value, values.at(operand, expression));
          *top++ = value;
        }
        break;
      case 1: {
        KERNELPACK_TRY(value, asks(op) ? ask(expression, op, top[-1], values.fitting())
                                       : apply_one(expression, op, top[-1]));
        top[-1] = value;
        break;
      }
      case 2: {
        KERNELPACK_TRY(value, apply_two(expression, op, top[-2], top[-1]));
        --top;
        top[-1] = value;
        break;
      }
      default:  // kSelect
        top -= 2;
        top[-1] = top[-1] ? top[0] : top[1];
    }
  }
  return top[-1];
}

inline std::optional<std::int64_t> Expression::constant() const {
  for (const Step& step : code)
    if (step.op == Op::kName || asks(step.op)) return std::nullopt;
  const auto value = evaluate(*this, Values({}, {}));
  return value ? std::optional(*value) : std::nullopt;
}

}  // namespace detail
}  // namespace kernelpack
