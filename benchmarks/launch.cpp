// The yardstick of benchmarks/launch.py: cuLaunchKernelEx called from C++, nothing around it.
// The structures are libcuda's ABI (cuda.h), so that no toolkit is needed to compile this.
#include <chrono>
#include <cstdint>

struct Attribute {
  uint32_t id;
  uint32_t padding;
  uint32_t value[16];
};

struct Config {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  void* stream;
  Attribute* attributes;
  uint32_t attribute_count;
};

using Launch = int (*)(const Config*, void* kernel, void** parameters, void** extra);

// Nanoseconds of one launch, the mean of `count`; negative: the driver's error code.
extern "C" double launch_many(Launch launch, const Config* config, void* kernel, void** parameters,
                              void* stream, int count) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    Config mine = *config;
    mine.stream = stream;
    if (const int code = launch(&mine, kernel, parameters, nullptr)) return -code;
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / count;
}
