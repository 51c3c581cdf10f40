// What benchmarks/bundle_lookup.py times of the C++ loader: microseconds, the median of many.
//
//     bundle_lookup BUNDLE          a line each: an id to find; then the results
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <kernelpack/loader.hpp>

using namespace kernelpack;

namespace {

template <class Action>
double microseconds(const Action& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

void print(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf("%s %.2f %.2f\n", name, times[times.size() / 2], times[times.size() * 99 / 100]);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

}  // namespace

int main(int, char** words) {
  std::vector<std::string> ids;
  for (std::string id; std::getline(std::cin, id);) ids.push_back(id);
  std::vector<double> first, again;
  for (const std::string& id : ids) {
    std::unique_ptr<Bundle> bundle;  // closing it is not timed
    first.push_back(microseconds([&] {
      auto opened = open_bundle(words[1]);
      require(static_cast<bool>(opened), "cannot be opened");
      bundle = std::move(*opened);
      require(static_cast<bool>(bundle->find(id)), "not found");
    }));
  }
  auto bundle = open_bundle(words[1]);
  for (int round = 0; round < 2; ++round)
    for (const std::string& id : ids) {
      const double spent =
          microseconds([&] { require(static_cast<bool>((*bundle)->find(id)), "not found"); });
      if (round) again.push_back(spent);
    }
  print("open_and_find", first);
  print("find", again);

  const std::string page(1024, 'x');
  const auto hash = [&](detail::sha256::Compress compress) {
    std::vector<double> times;
    for (int round = 0; round < 2000; ++round)
      times.push_back(microseconds([&] { detail::sha256::digest(compress, {}, page); }));
    return times;
  };
  print("sha256_of_1_kib", hash(detail::sha256::fastest().one));
  print("sha256_of_1_kib_plainly", hash(detail::sha256::compress_plainly));
}
