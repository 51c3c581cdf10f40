// A libFuzzer target: any bytes as a bundle. Digests are made right again first, so that what is
// fuzzed is what follows them.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <kernelpack/loader.hpp>

using namespace kernelpack;
using namespace kernelpack::detail;

namespace {

template <class Value>
void put(std::string& file, std::uint64_t at, const Value& value) {
  std::memcpy(&file[at], &value, sizeof value);
}

bool lies_inside(const std::string& file, const PartRow& part) {
  return part.offset <= file.size() && part.size <= file.size() - part.offset;
}

/// The digests of pages and nodes over an index, where its tree has room for them; the root.
Digest grow_tree(std::string& file, const PartRow& index, const PartRow& tree) {
  std::string level, all;
  const std::string_view bytes(file);
  const auto append = [](std::string& to, const Digest& digest) {
    to.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  };
  for (std::uint64_t at = 0; at < index.size; at += kPageBytes)
    append(level, digest_of({"\0", 1}, bytes.substr(index.offset + at,
                                                    std::min(kPageBytes, index.size - at))));
  while (level.size() > kDigestBytes) {
    all += level;
    std::string next;
    for (std::uint64_t at = 0; at < level.size(); at += kNodeBytes)
      append(next, digest_of("\1", std::string_view(level).substr(at, kNodeBytes)));
    level = next;
  }
  all.copy(&file[tree.offset], std::min<std::uint64_t>(all.size(), tree.size));
  return level.empty() ? Digest{} : read_as<Digest>(level.data());
}

void reseal(std::string& file) {
  if (file.size() < sizeof(HeaderRow) + 2 * sizeof(PartRow) + kDigestBytes) return;
  auto header = read_as<HeaderRow>(file.data());
  const auto index = read_as<PartRow>(&file[sizeof header]);
  const auto tree = read_as<PartRow>(&file[sizeof header + sizeof index]);
  kMagic.copy(header.magic, sizeof header.magic);
  header.format_major = kMajor;
  header.file_size = file.size();
  if (lies_inside(file, index) && lies_inside(file, tree))
    header.root = grow_tree(file, index, tree);
  put(file, 0, header);
  if (header.size < kDigestBytes || header.size > file.size()) return;
  const std::uint64_t end = header.size - kDigestBytes;
  put(file, end, digest_of(std::string_view(file).substr(0, end)));
}

void read_everything(const Bundle& bundle) {
  const auto variants = bundle.variants();
  if (!variants) return;
  const Sizes sizes = {{"m", 100},      {"n", 16},      {"k", 72},       {"g", 4},
                       {"n_active", 3}, {"a_dtype", 9}, {"out_dtype", 9}};
  (void)select(*variants, sizes, {9, 0});
  for (const Variant* variant : *variants) {
    Addresses addresses;
    for (const Argument* argument : variant->arguments)
      addresses.emplace_back(argument->name, 0x10000);
    (void)resolve(*variant, Values(variant->kernel->names, sizes), addresses, {{"eps", 0.5}},
                  [](Cta, std::int64_t ctas) -> Result<std::int64_t> { return 132 / ctas; });
    (void)bundle.find(variant->id);
    (void)bundle.image(variant->id);
  }
  (void)bundle.provenance("toolchain.release");
  (void)bundle.find("kernel[none]");
}

/// The key that signed a seed: tests/fakes/keys.py with the seed 1.
const Keys& keys() {
  static const Keys trusted_key = [] {
    Keys made{{}, *Ed25519::open()};
    made.all.insert({0xce, 0xcc, 0x15, 0x07, 0xdc, 0x1d, 0xdd, 0x72, 0x95, 0x95, 0x1c,
                     0x29, 0x08, 0x88, 0xf0, 0x95, 0xad, 0xb9, 0x04, 0x4d, 0x1b, 0x73,
                     0xd6, 0x96, 0xe6, 0xdf, 0x06, 0x5d, 0x68, 0x3b, 0xd4, 0xfc});
    return made;
  }();
  return trusted_key;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  reseal(file);
  const int descriptor = memfd_create("bundle", 0);
  if (write(descriptor, file.data(), file.size()) == static_cast<ssize_t>(file.size())) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
    (void)open_bundle(path, &keys());
    const auto bundle = open_bundle(path);
    if (bundle) read_everything(**bundle);
  }
  close(descriptor);
  return 0;
}
