// Eight threads share a library: each finds entries, chooses, packs and starts on its own stream.
//
//     threads LIBCUDA BUNDLE BUNDLE        prints how many launches there were
#include <atomic>
#include <cstdio>
#include <kernelpack/loader.hpp>
#include <thread>

using namespace kernelpack;

namespace {

constexpr int kThreads = 8, kRounds = 40;

Status serve(Library& library, int thread, std::atomic<int>& launches) {
  for (int round = 0; round < kRounds; ++round) {
    const int device = round % 2;
    const Sizes sizes = {{"m", 1 + thread * 100 + round},
                         {"n", 16},
                         {"k", 4096},
                         {"g", 4},
                         {"n_active", 1 + round},
                         {"choose_for", 0},
                         {"a_dtype", 8 + round % 2},
                         {"out_dtype", 9}};
    const std::uint64_t base = 0x100000 * static_cast<std::uint64_t>(1 + thread);
    const Addresses addresses = {
        {"c", base}, {"a", base}, {"b", base}, {"a_offsets", base}, {"expert_ids", base}};
    const auto variant = library.select("lora_shrink_qkv", sizes, device);
    if (!variant) return variant.error();
    const auto record = (*variant)->bundle->find((*variant)->id);
    if (!record) return record.error();
    auto launch = library.pack(**variant, sizes, addresses, device);
    if (!launch) return launch.error();
    const auto stream = reinterpret_cast<Stream>(0x100 * std::uintptr_t(device) + 0x10 +
                                                 2 * std::uintptr_t(thread));
    for (const Stream on : {stream, Stream()}) {
      const Status done = (*launch)(on);
      if (!done) return done;
      ++launches;
    }
  }
  return {};
}

}  // namespace

int main(int, char** words) {
  auto driver = Driver::connect(words[1]);
  auto library = load({words[2], words[3]}, std::move(*driver));
  if (!library) return std::puts(library.error().text().c_str()), 1;
  std::atomic<int> launches = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      const Status done = serve(**library, thread, launches);
      if (!done) std::puts(done.error().text().c_str());
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\n", launches.load());
}
