// Asks the C++ loader what Python's tests ask kernelpack: lines in, a line out for each.
//
//     inspect digests           BYTES PREFIX_BYTES -> digest of so many bytes, by both ways
//     inspect messages          BYTES … -> digests of a 1 and so many bytes, together, by both ways
//     inspect expressions       text TAB names TAB name=value … TAB op:operand … -> value
//     inspect plans BUNDLE …    kernel TAB x.y TAB name=value … TAB argument=address …, and if it
//     has
//                               numbers TAB number=value … -> plan
//     inspect overlays BUNDLE … path -> kernel:problems … of a file of times, or why it is refused
//     inspect tuned TIMES BUNDLE … kernel TAB x.y TAB name=value … -> the variant that is chosen
//     inspect launch            path TAB as of plans -> plan, of that bundle alone
//     inspect read              path -> all that a program that launches kernels may read
//     inspect join              path TAB … -> the ids of all their variants, taken together
//     inspect trust KEY …       path TAB … -> as join, where one of the keys must have signed each
//     inspect shorten           path -> what is said of a file that is cut while it is open, and
//     then mended
//
// An error is `error TEXT`, its line ends written `\n`.
#include <kernelpack/loader.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace kernelpack;
using namespace kernelpack::detail;

namespace {

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, by);)
    if (by != ' ' || !part.empty()) parts.push_back(part);
  return parts;
}

/// Text in one line.
std::string line_of(const std::string& text) {
  std::string line;
  for (const char letter : text)
    line += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  return line;
}

void fail(const Error& error) { std::cout << "error " << line_of(error.text()) << "\n"; }

std::int64_t number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 0); }

/// `name=value …`; the names lie in `words`.
Sizes sizes_of(const std::vector<std::string>& words) {
  Sizes sizes;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    sizes.emplace_back(std::string_view(word).substr(0, at), number(word.substr(at + 1)));
  }
  return sizes;
}

/// `name=value …`, values as C writes them; the names lie in `words`.
Numbers numbers_of(const std::vector<std::string>& words) {
  Numbers numbers;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    const double value = std::strtod(word.c_str() + at + 1, nullptr);
    numbers.emplace_back(std::string_view(word).substr(0, at), value);
  }
  return numbers;
}

void digests(const std::string& line) {
  const auto words = split(line, ' ');
  std::string data(number(words[0]), '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + 3);
  const std::string_view all(data), prefix = all.substr(0, number(words[1]));
  const std::string_view rest = all.substr(prefix.size());
  std::cout << hex(sha256::digest(sha256::compress_plainly, prefix, rest)) << " "
            << hex(digest_of(prefix, rest)) << "\n";
}

void messages(const std::string& line) {
  const std::string data(kPageBytes, 'x');
  std::vector<Message> some;
  for (const std::string& size : split(line, ' '))
    some.emplace_back('\1', std::string_view(data).substr(0, number(size)));
  std::vector<Message> same = some;
  finish(some, {sha256::compress_plainly, sha256::compress_two_plainly});
  finish(same);
  const auto show = [](const Message& message) { return hex(message.digest()); };
  std::cout << joined(some, show, " ") << " " << joined(same, show, " ") << "\n";
}

void expressions(const std::string& line) {
  const auto fields = split(line, '\t');
  const auto words = split(fields[1], ' '), given = split(fields[2], ' ');
  const std::vector<std::string_view> names(words.begin(), words.end());
  const Sizes sizes = sizes_of(given);
  Expression expression{fields[0], {}};
  for (const std::string& word : split(fields[3], ' ')) {
    const std::size_t at = word.find(':');
    expression.code.push_back(
        {static_cast<Op>(number(word.substr(0, at))), number(word.substr(at + 1))});
  }
  const Values values(names, sizes);
  const auto gpcs = fields.size() > 4 ? split(fields[4], ' ') : std::vector<std::string>();
  const Fitting fitting = [&](std::int64_t ctas) -> Result<std::int64_t> {
    std::int64_t clusters = 0;
    for (const std::string& gpc : gpcs) clusters += ctas > kMostCluster ? 0 : number(gpc) / ctas;
    return clusters;
  };
  const auto value = evaluate(expression, gpcs.empty() ? values : Values(values, fitting));
  if (!value) return fail(value.error());
  std::cout << *value << "\n";
}

template <class Items>
std::string list(const Items& items) {
  return joined(items, [](auto item) { return decimal(item); }, ",");
}

std::string shown(const Dim3& dim) { return list(std::vector{dim.x, dim.y, dim.z}); }

std::string shown(const PlanArgument& argument) {
  if (const auto* pointer = std::get_if<Pointer>(&argument))
    return "pointer:" + decimal(pointer->address);
  if (const auto* scalar = std::get_if<Scalar>(&argument))
    return "scalar:" + decimal(static_cast<int>(scalar->dtype)) + ":" + decimal(scalar->value);
  const auto& map = std::get<TensorMap>(argument);
  const auto code = [](auto value) { return static_cast<int>(value); };
  const auto& [element, swizzle, interleave, fill, promotion, gather4] = map.encoding;
  return "map:" + decimal(map.address) + ":" + list(map.dims) + ":" + list(map.strides_bytes) +
         ":" + list(map.box) + ":" + list(map.element_strides) + ":" +
         list(std::vector{code(element), code(swizzle), code(interleave), code(fill),
                          code(promotion), code(gather4)});
}

void plan(const Joined& bundles, const std::string& line) {
  const auto fields = split(line, '\t');
  const auto capability = split(fields[1], '.'), words = split(fields[2], ' '),
             places = split(fields[3], ' ');
  const Sizes sizes = sizes_of(words);
  Addresses addresses;
  for (const auto& [name, value] : sizes_of(places)) addresses.emplace_back(name, value);
  const auto given = fields.size() > 4 ? split(fields[4], ' ') : std::vector<std::string>();
  const Numbers numbers = numbers_of(given);
  const auto variants = bundles.variants(fields[0]);
  if (!variants) return fail(variants.error());
  const auto variant = select(**variants, sizes,
                              {std::atoi(capability[0].c_str()), std::atoi(capability[1].c_str())});
  if (!variant) return fail(variant.error());
  // A multiprocessor holds two CTAs of little shared memory, and is a GPC's only limit.
  std::int64_t multiprocessors = 0;
  for (const auto& [name, value] : sizes)
    if (name == "sm_count") multiprocessors = value;
  const Fits fits = [&](Cta cta, std::int64_t ctas) -> Result<std::int64_t> {
    return multiprocessors * (cta.shared_bytes > 116000 ? 1 : 2) / ctas;
  };
  const auto made =
      resolve(**variant, Values((*variant)->kernel->names, sizes), addresses, numbers, fits);
  if (!made) return fail(made.error());
  std::vector<std::uint64_t> slots;
  for (const Slot& slot : layout((*variant)->params, 0)) slots.push_back(slot.offset);
  std::cout << line_of(std::string((*variant)->id)) << " " << (*variant)->symbol << " "
            << shown(made->grid) << " " << shown(made->block) << " " << shown(made->cluster) << " "
            << made->shared_bytes << " " << made->is_programmatic << " " << list(slots);
  for (const PlanArgument& argument : made->arguments) std::cout << " " << shown(argument);
  std::cout << "\n";
}

/// What is in a file of times that is of some bundles.
Result<std::string> overlay(const Joined& bundles, const std::string& path) {
  const auto found = overlay_of(bundles, path);
  if (!found) return found.error();
  const auto show = [](const TunedKernel& kernel) {
    return kernel.stem + ":" + decimal(kernel.problems.size());
  };
  return found->device.text() + " " + joined(found->kernels, show, " ");
}

/// Which variant is chosen where times were measured.
Result<std::string> tuned(const Joined& bundles, const Overlay& times, const std::string& line) {
  const auto fields = split(line, '\t');
  const auto capability = split(fields[1], '.'), words = split(fields[2], ' ');
  const auto variants = bundles.variants(fields[0]);
  if (!variants) return variants.error();
  const auto variant = select(**variants, sizes_of(words),
                              {std::atoi(capability[0].c_str()), std::atoi(capability[1].c_str())},
                              times.find(fields[0]));
  if (!variant) return variant.error();
  return std::string((*variant)->id);
}

/// A plan of one bundle: what a server makes of a file.
void launch(const std::string& line) {
  const std::size_t end = line.find('\t');
  const auto bundles = open_all({line.substr(0, end)});
  if (!bundles) return fail(bundles.error());
  plan(**bundles, line.substr(end + 1));
}

Result<std::string> everything(const std::string& path) {
  auto bundle = open_bundle(path);
  if (!bundle) return bundle.error();
  const auto release = (*bundle)->provenance("toolchain.release");
  if (!release) return release.error();
  const auto variants = (*bundle)->variants();
  if (!variants) return variants.error();
  std::string text = (*bundle)->root() + " " + decimal(release->size());
  for (const Variant* variant : *variants) {
    const auto record = (*bundle)->find(variant->id);
    if (!record) return record.error();
    const auto image = (*bundle)->image(variant->id);
    if (!image) return image.error();
    text += " " + std::string(record->id) + "=" + hex(digest_of(*image));
    for (const Expression* expression : {variant->cost, variant->workspace_bytes})
      (void)expression->constant();
  }
  const auto missing = (*bundle)->find("kernel[arch=none]");
  if (!missing && missing.error().what != "no entry `kernel[arch=none]`") return missing.error();
  return text;
}

Result<std::string> ids(const std::string& line, const Trust& trust) {
  const auto bundles = open_all(split(line, '\t'), trust);
  if (!bundles) return bundles.error();
  const auto variants = (*bundles)->variants();
  if (!variants) return variants.error();
  for (const Variant* variant : *variants) {
    const auto holding = (*bundles)->holding(variant->id);
    if (!holding) return holding.error();
    if (*holding != variant->bundle) return std::string("held by another");
  }
  return joined(*variants, [](const Variant* variant) { return std::string(variant->id); }, " ");
}

void print(const Result<std::string>& text) {
  if (!text) return fail(text.error());
  std::cout << line_of(*text) << "\n";
}

/// What an open file says while it is cut, and once it is whole again: its variants, then an image.
void shorten(const std::string& path) {
  const auto bundle = open_bundle(path);
  std::ifstream file(path, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const auto cut_and_mend = [&](auto ask) {
    if (::truncate(path.c_str(), 600)) std::cout << "cannot be cut\n";
    print(ask());
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << whole;
    print(ask());
  };
  std::string id;
  cut_and_mend([&]() -> Result<std::string> {
    const auto variants = (*bundle)->variants();
    if (!variants) return variants.error();
    id = variants->front()->id;
    return decimal(variants->size());
  });
  cut_and_mend([&]() -> Result<std::string> {
    const auto image = (*bundle)->image(id);
    if (!image) return image.error();
    return hex(digest_of(*image));
  });
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  const std::vector<std::string> files(words + std::min(count, mode == "tuned" ? 3 : 2),
                                       words + count);
  const bool are_bundles = mode == "plans" || mode == "overlays" || mode == "tuned";
  auto bundles = are_bundles ? open_all(files) : Result<std::unique_ptr<Joined>>(nullptr);
  if (!bundles) return fail(bundles.error()), 1;
  auto times = mode == "tuned" ? overlay_of(**bundles, words[2]) : Result<Overlay>(Overlay{});
  if (!times) return fail(times.error()), 1;
  for (std::string line; std::getline(std::cin, line);) {
    if (mode == "digests") digests(line);
    if (mode == "messages") messages(line);
    if (mode == "expressions") expressions(line);
    if (mode == "plans") plan(**bundles, line);
    if (mode == "overlays") print(overlay(**bundles, line));
    if (mode == "tuned") print(tuned(**bundles, *times, line));
    if (mode == "launch") launch(line);
    if (mode == "shorten") shorten(line);
    if (mode == "read") print(everything(line));
    if (mode == "join") print(ids(line, {}));
    if (mode == "trust") print(ids(line, files));
  }
}
