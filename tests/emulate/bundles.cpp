// y = 2 x on 40 numbers by a kernel of a bundle, through the loader or through the C interface.
//
//     bundles BUNDLE loader|c
#include <kernelpack/kernelpack.h>

#include <cstdio>
#include <cstring>
#include <kernelpack/loader.hpp>

#include "device.hpp"

namespace {

int say(const std::string& error) { return std::printf("%s\n", error.c_str()), 1; }

int start(const char* path, const kernelpack::Addresses& addresses, kernelpack::Stream stream) {
  auto library = kernelpack::load(path);
  if (!library) return say(library.error().text());
  const kernelpack::Sizes sizes = {{"n", 40}};
  const auto variant = (*library)->select("twice", sizes, 0, {1, 1});
  if (!variant) return say(variant.error().text());
  auto launch = (*library)->pack(**variant, sizes, addresses, 0);
  if (!launch) return say(launch.error().text());
  const auto started = (*launch)(stream);
  return started ? 0 : say(started.error().text());
}

int start_in_c(const char* path, const kernelpack::Addresses& given, kernelpack::Stream stream) {
  const kp_size sizes[] = {{"n", 40}};
  const kp_address addresses[] = {{"x", given[0].second}, {"y", given[1].second}};
  const kp_problem problem = {sizeof problem, "twice", sizes, 1, 0, 1, 1};
  const kp_arguments arguments = {sizeof arguments, addresses, 2, nullptr, nullptr, 0};
  kp_library* library = nullptr;
  const kp_variant* variant = nullptr;
  kp_launch* launch = nullptr;
  kp_error* error = nullptr;
  if (kp_library_open(&path, 1, nullptr, &library, &error) ||
      kp_select(library, &problem, &variant, &error) ||
      kp_launch_pack(library, variant, &problem, &arguments, &launch, &error) ||
      kp_launch_start(launch, stream, &error))
    return say(kp_error_what(error));
  return kp_launch_free(launch), kp_library_free(library), 0;
}

}  // namespace

int main(int, char** words) {
  auto driver = kernelpack::Driver::connect();
  if (!driver) return say(driver.error().text());
  int failed = 0;
  const auto done = (*driver)->with_current(0, [&]() -> kernelpack::Status {
    const server::OwnStream stream;
    float numbers[40];
    for (int i = 0; i < 40; ++i) numbers[i] = static_cast<float>(i);
    server::Memory x(sizeof numbers), y(sizeof numbers);
    x.write(numbers, sizeof numbers, stream);
    const kernelpack::Addresses addresses = {{"x", x.address()}, {"y", y.address()}};
    failed = (std::strcmp(words[2], "c") ? start : start_in_c)(words[1], addresses, stream);
    if (failed) return {};
    y.read(numbers, sizeof numbers, stream);
    stream.wait();
    std::printf("%g %g\n", double{numbers[1]}, double{numbers[39]});
    return {};
  });
  return failed || !done;
}
