// What is known of operations in flight, by their number; these count up, and end nearly in order.
#pragma once

#include <cstdint>
#include <deque>

#include "../doubt.hpp"

namespace kernelpack::checks {

template <typename T>
class Flights {
public:
  void add(int64_t operation, T value) {
    if (flights_.empty()) first_ = operation;
    if (operation < first_) doubt("operations are issued out of order");
    while (first_ + static_cast<int64_t>(flights_.size()) <= operation) flights_.emplace_back();
    flights_[static_cast<size_t>(operation - first_)] = {std::move(value), true};
  }
  // Null where nothing is known of it.
  T* find(int64_t operation) {
    if (operation < first_ || operation >= first_ + static_cast<int64_t>(flights_.size()))
      return nullptr;
    Flight& flight = flights_[static_cast<size_t>(operation - first_)];
    return flight.is_on ? &flight.value : nullptr;
  }
  T& at(int64_t operation) {
    T* found = find(operation);
    if (!found) doubt("an operation that was never issued");
    return *found;
  }
  void end(int64_t operation) {
    if (!find(operation)) return;
    flights_[static_cast<size_t>(operation - first_)] = {T{}, false};
    for (; !flights_.empty() && !flights_.front().is_on; ++first_) flights_.pop_front();
  }

private:
  struct Flight {
    T value{};
    bool is_on = false;
  };
  std::deque<Flight> flights_;
  int64_t first_ = 0;
};

}  // namespace kernelpack::checks
