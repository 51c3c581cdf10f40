// Python's random.Random: the same draws for the same state (MT19937).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace kernelpack {

class Random {
public:
  // The 624 words and the position of `random.Random.getstate()[1]`.
  void set(const uint32_t* words) {
    for (int i = 0; i < N; ++i) state_[i] = words[i];
    at_ = static_cast<int>(words[N]);
  }

  // `random()`: 53 bits of two words.
  double real() {
    const uint32_t a = word() >> 5, b = word() >> 6;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
  }

  // `_randbelow(n)`: the first draw of as many bits as n has that is below n.
  uint32_t below(uint32_t n) {
    const int bits = 32 - __builtin_clz(n);
    uint32_t drawn = word() >> (32 - bits);
    while (drawn >= n) drawn = word() >> (32 - bits);
    return drawn;
  }

  // `shuffle`.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[below(i + 1)]);
  }

private:
  static constexpr int N = 624, M = 397;

  uint32_t word() {
    if (at_ >= N) refill();
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  void refill() {
    uint32_t* const s = state_.data();
    const auto mixed = [s](int i, int next) {
      const uint32_t y = (s[i] & 0x80000000u) | (s[next] & 0x7fffffffu);
      return (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
    };
    for (int i = 0; i < N - M; ++i) s[i] = s[i + M] ^ mixed(i, i + 1);
    for (int i = N - M; i < N - 1; ++i) s[i] = s[i + M - N] ^ mixed(i, i + 1);
    s[N - 1] = s[M - 1] ^ mixed(N - 1, 0);
    at_ = 0;
  }

  std::array<uint32_t, N> state_{};
  int at_ = N;
};

}  // namespace kernelpack
