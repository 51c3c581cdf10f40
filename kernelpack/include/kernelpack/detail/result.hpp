// A value, or the error that is in its place. Nothing here throws: a server that is compiled
// with -fno-exceptions uses the same headers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kernelpack {

/// What kind of request could not be served; the kinds of kernelpack's Python errors.
enum class ErrorKind {
  kBundle = 1,
  kExpression,
  kProblem,
  kSelection,
  kTensorMap,
  kDriver,
  kCapture,
  kFork
};

/// A request that cannot be served: where, what, and what would be right; texts as Python's.
struct Error {
  ErrorKind kind;
  std::string what;
  std::string where = {};
  std::string hint = {};

  /// All of it as people read it: `where: what`, then a line with the hint.
  std::string text() const {
    const std::string head = where.empty() ? what : where + ": " + what;
    return hint.empty() ? head : head + "\nhint: " + hint;
  }
};

/// A value or an error. Look before taking the value: `if (result) use(*result);`.
template <class Value>
class [[nodiscard]] Result {
public:
  Result(Value value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  Value& operator*() { return *std::get_if<0>(&held_); }
  const Value& operator*() const { return *std::get_if<0>(&held_); }
  Value* operator->() { return std::get_if<0>(&held_); }
  const Value* operator->() const { return std::get_if<0>(&held_); }
  Error& error() { return *std::get_if<1>(&held_); }
  const Error& error() const { return *std::get_if<1>(&held_); }

private:
  std::variant<Value, Error> held_;
};

/// Success without a value, or an error.
template <>
class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace kernelpack

/// Declares `name` as the value of a result, or returns the result's error from this function.
#define KERNELPACK_TRY(name, result)                           \
  auto name##_result = (result);                               \
  if (!name##_result) return std::move(name##_result.error()); \
  auto& name = *name##_result

/// Returns the error of a result that has no value, or whose value is not needed.
#define KERNELPACK_CHECK(result)                                   \
  do {                                                             \
    auto checked_result = (result);                                \
    if (!checked_result) return std::move(checked_result.error()); \
  } while (false)
