// Targets, and what a launch may ask for on each.
// Written by docs/generate.py from kernelpack/spec/arch.py: change that, then run it.
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpack::detail {

/// Counts along x, y and z, CTAs of a cluster, and bytes of a block's shared memory.
struct Limits {
  std::int64_t grid[3], block[3], threads, cluster, shared_bytes;
};

/// Compute capabilities, major and minor.
struct Capabilities {
  int count, of[3][2];
};

struct Target {
  std::string_view name;
  Capabilities capabilities;     // of the devices that its machine code runs on
  std::uint64_t parameter_base;  // where a kernel's parameters begin in its constant bank
  Limits limits;
};

// clang-format off
constexpr Target kTargets[] = {
    {"sm_100a", {1, {{10, 0}}}, 0x380, {{2147483647, 65535, 65535}, {1024, 1024, 64}, 1024, 16, 232448}},
    {"sm_103a", {1, {{10, 3}}}, 0x380, {{2147483647, 65535, 65535}, {1024, 1024, 64}, 1024, 16, 232448}},
    {"sm_100f", {3, {{10, 0}, {10, 3}, {10, 7}}}, 0x380, {{2147483647, 65535, 65535}, {1024, 1024, 64}, 1024, 16, 232448}},
    {"sm_90a", {1, {{9, 0}}}, 0x210, {{2147483647, 65535, 65535}, {1024, 1024, 64}, 1024, 16, 232448}},
};
// clang-format on

constexpr std::int64_t kMostCluster = 16;  // CTAs, of any target
// CTAs that every device takes; for more a function must allow it.
constexpr std::int64_t kPortableCluster = 8;

}  // namespace kernelpack::detail
