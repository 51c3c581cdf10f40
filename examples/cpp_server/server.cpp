// Serves requests from a bundle with several threads, each on its own stream, and checks every
// number that comes back. Kernels that the bundle lacks for the device are not asked for.
//
//     server BUNDLE [DEVICE [REQUESTS [THREADS]]]
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <kernelpack/loader.hpp>
#include <thread>

#include "device.hpp"
#include "lora.hpp"
#include "mla.hpp"
#include "mla_decode.hpp"
#include "nvfp4.hpp"

namespace server {

using kernelpack::Library;
using kernelpack::Result;
using kernelpack::Status;

using Make = Request (*)(Random&);
struct Served {
  const char* kernel;
  Make make;
};
constexpr Served kServed[] = {{"lora_shrink_qkv", lora_request},
                              {"nvfp4_w4a16_grouped_gemm", w4a16_request},
                              {"nvfp4_grouped_gemm", w4a4_request},
                              {"sparse_mla_prefill", mla_request},
                              {"mla_decode_project", project_request}};

/// What all threads have served so far.
struct Totals {
  std::atomic<int> requests{0}, wrong_requests{0};
  std::atomic<std::size_t> elements{0};
};

/// One request: copy in, choose, pack, start, copy out, check.
Status serve(Library& library, int device, const OwnStream& stream, const Request& request,
             Totals& totals) {
  std::vector<Memory> memory;
  kernelpack::Addresses addresses;
  const auto place = [&](const char* name, std::size_t size) -> Memory& {
    memory.emplace_back(size);
    addresses.emplace_back(name, memory.back().address());
    return memory.back();
  };
  for (const Array& input : request.inputs)
    place(input.name, input.bytes.size()).write(input.bytes.data(), input.bytes.size(), stream);
  std::vector<std::uint16_t> c(request.expected.size());
  place(request.output, c.size() * sizeof c[0]);

  const auto variant =
      library.select(request.kernel, request.sizes, device, {request.abi, request.abi});
  if (!variant) return variant.error();
  auto launch = library.pack(**variant, request.sizes, addresses, device);
  if (!launch) return launch.error();
  const Status started = (*launch)(stream);
  if (!started) return started;
  memory.back().read(c.data(), c.size() * sizeof c[0], stream);
  stream.wait();

  const std::size_t count = wrong(request, c);
  if (count)
    std::printf("%s: %zu of %zu elements are wrong\n", std::string((*variant)->id).c_str(), count,
                c.size());
  ++totals.requests;
  totals.wrong_requests += count != 0;
  totals.elements += c.size();
  return {};
}

/// A thread: so many requests of each kernel, in turns.
Status work(Library& library, int device, int thread, int requests,
            const std::vector<Served>& served, Totals& totals) {
  return library.driver().with_current(device, [&]() -> Status {
    const OwnStream stream;
    Random random(static_cast<unsigned>(thread));
    for (int number = 0; number < requests; ++number)
      for (const Served& kernel : served) {
        Status done = serve(library, device, stream, kernel.make(random), totals);
        if (!done) return done;
      }
    return {};
  });
}

int fail(const kernelpack::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

/// Load the device's kernels, and name those that are missing.
Result<std::vector<Served>> preload(Library& library, int device) {
  std::vector<Served> served;
  for (const Served& kernel : kServed) {
    const auto loaded = library.preload(device, kernel.kernel);
    if (!loaded && loaded.error().kind != kernelpack::ErrorKind::kSelection) return loaded.error();
    if (!loaded) {
      fail(loaded.error());
      continue;
    }
    std::printf("%s: %zu kernels loaded\n", kernel.kernel, *loaded);
    served.push_back(kernel);
  }
  return served;
}

int run(const char* path, int device, int requests, int count) {
  auto library = kernelpack::load(path);
  if (!library) return fail(library.error());
  const auto gpu = (*library)->driver().device(device);
  if (!gpu) return fail(gpu.error());
  std::printf("%s, %s\n", (*gpu)->text().c_str(), (*library)->driver().text().c_str());
  const auto served = preload(**library, device);
  if (!served) return fail(served.error());

  Totals totals;
  std::atomic<bool> has_failed{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread)
    threads.emplace_back([&, thread] {
      const Status done = work(**library, device, thread, requests, *served, totals);
      if (!done) has_failed = fail(done.error());
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d requests served by %d threads, %zu elements checked, %d requests wrong\n",
              totals.requests.load(), count, totals.elements.load(), totals.wrong_requests.load());
  return has_failed || totals.wrong_requests || served->empty();
}

}  // namespace server

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "server BUNDLE [DEVICE [REQUESTS [THREADS]]]\n"), 2;
  return server::run(words[1], count > 2 ? std::atoi(words[2]) : 0,
                     count > 3 ? std::atoi(words[3]) : 25, count > 4 ? std::atoi(words[4]) : 8);
}
