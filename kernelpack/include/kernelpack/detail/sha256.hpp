// SHA-256 (FIPS 180-4): the plain definition, and beside it the same with the instructions that
// x86 processors have for it, which is chosen once and is five times as fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace kernelpack::detail {

using Digest = std::array<std::uint8_t, 32>;

inline std::string hex(const Digest& digest) {
  std::string text;
  for (const unsigned byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

namespace sha256 {

constexpr std::size_t kBlockBytes = 64;
using State = std::array<std::uint32_t, 8>;

constexpr State kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr std::uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using Compress = void (*)(State&, const std::uint8_t* blocks, std::size_t count);
using CompressTwo = void (*)(State& one, const std::uint8_t* blocks_of_one, State& two,
                             const std::uint8_t* blocks_of_two, std::size_t count);

constexpr std::uint32_t rotated(std::uint32_t x, int by) { return x >> by | x << (32 - by); }

inline void compress_plainly(State& state, const std::uint8_t* blocks, std::size_t count) {
  for (; count; --count, blocks += kBlockBytes) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = std::uint32_t{blocks[4 * i]} << 24 | std::uint32_t{blocks[4 * i + 1]} << 16 |
             std::uint32_t{blocks[4 * i + 2]} << 8 | blocks[4 * i + 3];
    for (int i = 16; i < 64; ++i) {
      const std::uint32_t low = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
      const std::uint32_t high = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t high = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
      const std::uint32_t one = h + high + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
      const std::uint32_t low = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
      const std::uint32_t two = low + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    const State change = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += change[i];
  }
}

inline void compress_two_plainly(State& one, const std::uint8_t* blocks_of_one, State& two,
                                 const std::uint8_t* blocks_of_two, std::size_t count) {
  compress_plainly(one, blocks_of_one, count);
  compress_plainly(two, blocks_of_two, count);
}

#if defined(__x86_64__)

// Intel SHA Extensions: two rounds at a time, over a state that is held as (a b e f) and (c d g h).
// They wait for one another, so two messages at once take hardly longer than one.
#define KERNELPACK_SHA __attribute__((target("sha,sse4.1")))

/// A message on its way: its state before a block and now, and the words of the next rounds.
struct Lane {
  __m128i abef, cdgh, abef_before, cdgh_before, w[4];
};

KERNELPACK_SHA inline void load(Lane& lane, const State& state) {
  const __m128i* words = reinterpret_cast<const __m128i*>(state.data());
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  lane.abef = _mm_alignr_epi8(badc, efgh, 8);
  lane.cdgh = _mm_blend_epi16(efgh, badc, 0xF0);
}

KERNELPACK_SHA inline void store(const Lane& lane, State& state) {
  __m128i* words = reinterpret_cast<__m128i*>(state.data());
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(lane.cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

/// Four rounds of a block, the i-th of sixteen such.
KERNELPACK_SHA inline void make_four_rounds(Lane& lane, const std::uint8_t* block, int i) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i& now = lane.w[i & 3];
  if (i < 4) {
    const __m128i* at = reinterpret_cast<const __m128i*>(block) + i;
    now = _mm_shuffle_epi8(_mm_loadu_si128(at), big_endian);
  } else {
    const __m128i &next = lane.w[(i + 1) & 3], &far = lane.w[(i + 2) & 3],
                  &last = lane.w[(i + 3) & 3];
    const __m128i sum =
        _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, far, 4));
    now = _mm_sha256msg2_epu32(sum, last);
  }
  const __m128i constants = _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds) + i);
  const __m128i mixed = _mm_add_epi32(now, constants);
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, mixed);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(mixed, 0x0E));
}

template <int kLanes>
KERNELPACK_SHA void compress_lanes(State* const (&&states)[kLanes],
                                   const std::uint8_t* (&&blocks)[kLanes], std::size_t count) {
  Lane lanes[kLanes];
  for (int at = 0; at < kLanes; ++at) load(lanes[at], *states[at]);
  for (; count; --count) {
    for (Lane& lane : lanes) lane.abef_before = lane.abef, lane.cdgh_before = lane.cdgh;
#pragma GCC unroll 16  // keeps `w` in registers
    for (int i = 0; i < 16; ++i)
#pragma GCC unroll 2
      for (int at = 0; at < kLanes; ++at) make_four_rounds(lanes[at], blocks[at], i);
    for (Lane& lane : lanes) {
      lane.abef = _mm_add_epi32(lane.abef, lane.abef_before);
      lane.cdgh = _mm_add_epi32(lane.cdgh, lane.cdgh_before);
    }
    for (const std::uint8_t*& block : blocks) block += kBlockBytes;
  }
  for (int at = 0; at < kLanes; ++at) store(lanes[at], *states[at]);
}

KERNELPACK_SHA inline void compress_by_instruction(State& state, const std::uint8_t* blocks,
                                                   std::size_t count) {
  compress_lanes<1>({&state}, {blocks}, count);
}

KERNELPACK_SHA inline void compress_two_by_instruction(State& one,
                                                       const std::uint8_t* blocks_of_one,
                                                       State& two,
                                                       const std::uint8_t* blocks_of_two,
                                                       std::size_t count) {
  compress_lanes<2>({&one, &two}, {blocks_of_one, blocks_of_two}, count);
}

#undef KERNELPACK_SHA

inline bool has_instruction() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

#endif

/// How one message is compressed, and how two that have as many blocks are.
struct Ways {
  Compress one;
  CompressTwo two;
};

inline Ways find_fastest() {
#if defined(__x86_64__)
  if (has_instruction()) return {compress_by_instruction, compress_two_by_instruction};
#endif
  return {compress_plainly, compress_two_plainly};
}

inline const Ways& fastest() {
  static const Ways ways = find_fastest();
  return ways;
}

/// End a message of some bits, the last of whose blocks hold so many bytes; how many blocks those
/// are then.
inline std::size_t pad(std::uint8_t* blocks, std::size_t held, std::uint64_t bits) {
  const std::size_t count = (held + 9 + kBlockBytes - 1) / kBlockBytes;
  std::memset(blocks + held, 0, count * kBlockBytes - held);
  blocks[held] = 0x80;
  for (int i = 0; i < 8; ++i)
    blocks[count * kBlockBytes - 1 - i] = static_cast<std::uint8_t>(bits >> 8 * i);
  return count;
}

inline Digest bytes_of(const State& state) {
  Digest made;
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return made;
}

/// The digest of a prefix of less than a block, and the data after it.
inline Digest digest(Compress compress, std::string_view prefix, std::string_view data) {
  State state = kStart;
  const std::uint64_t bits = 8 * std::uint64_t{prefix.size() + data.size()};
  std::uint8_t block[2 * kBlockBytes];
  std::size_t held = prefix.copy(reinterpret_cast<char*>(block), kBlockBytes);
  if (held) {
    const std::size_t taken = data.copy(reinterpret_cast<char*>(block) + held, kBlockBytes - held);
    data.remove_prefix(taken);
    held += taken;
    if (held == kBlockBytes) {
      compress(state, block, 1);
      held = 0;
    }
  }
  const std::size_t whole = held ? 0 : data.size() / kBlockBytes;
  compress(state, reinterpret_cast<const std::uint8_t*>(data.data()), whole);
  data.remove_prefix(whole * kBlockBytes);
  held += data.copy(reinterpret_cast<char*>(block) + held, kBlockBytes);

  compress(state, block, pad(block, held, bits));
  return bytes_of(state);
}

}  // namespace sha256

/// SHA-256 of a short prefix and the data after it.
inline Digest digest_of(std::string_view prefix, std::string_view data) {
  return sha256::digest(sha256::fastest().one, prefix, data);
}

inline Digest digest_of(std::string_view data) { return digest_of({}, data); }

}  // namespace kernelpack::detail
