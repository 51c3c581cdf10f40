// The file of measured times that `kernelpack tune` writes; load/overlay.py says what is in it.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "driver.hpp"
#include "joined.hpp"
#include "json.hpp"
#include "tuned.hpp"

namespace kernelpack::detail {

constexpr std::size_t kMostOverlayBytes = 1 << 26;

/// An overlay out of JSON; each function says whether the value has the form.
class OverlayReader {
public:
  static Result<Overlay> read(const std::string& path) {
    KERNELPACK_TRY(data, bytes(path));
    Overlay overlay;
    overlay.path = path;
    const auto value = data.size() <= kMostOverlayBytes ? JsonReader::read(data) : std::nullopt;
    if (value && whole(*value, overlay)) return overlay;
    return Error{ErrorKind::kBundle, "no file of measured times that this version reads", path,
                 kHint};
  }

private:
  static constexpr const char* kHint = "`kernelpack tune` writes one";

  static Result<std::string> bytes(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    std::string data;
    char part[4096];
    if (file)
      while (const std::size_t size = std::fread(part, 1, sizeof part, file.get())) {
        data.append(part, size);
        if (data.size() > kMostOverlayBytes) break;
      }
    if (!file || std::ferror(file.get()))
      return Error{ErrorKind::kBundle, std::string("cannot be read: ") + std::strerror(errno), path,
                   kHint};
    return data;
  }

  static bool whole(const Json& value, Overlay& to) {
    const Json *format = value.find("format"), *device = value.find("device"),
               *driver = value.find("driver");
    if (!format || format->number != 1 || !device || !driver || driver->kind != Json::Kind::kText ||
        !device_of(*device, to.device))
      return false;
    return each(value.find("kernels"),
                [&](const Json& kernel) { return kernel_of(kernel, to.kernels.emplace_back()); });
  }

  static bool device_of(const Json& value, TunedDevice& to) {
    const Json* capability = value.find("capability");
    if (!capability || capability->items.size() != 2) return false;
    std::int64_t first = 0, second = 0;
    if (!count(&capability->items[0], first) || !count(&capability->items[1], second)) return false;
    to.capability = {static_cast<int>(first), static_cast<int>(second)};
    return text(value.find("name"), to.name) && count(value.find("sm_count"), to.sm_count);
  }

  static bool kernel_of(const Json& value, TunedKernel& to) {
    const auto variant = [&](const Json& one) {
      std::string id, image;
      if (!text(one.find("id"), id) || !text(one.find("image"), image)) return false;
      const auto [place, is_new] = to.places.emplace(id, to.images.size());
      if (is_new)
        to.images.emplace_back(id, image);
      else
        to.images[place->second].second = image;
      return true;
    };
    const auto problem = [&](const Json& one) {
      Measured& made = to.problems.emplace_back();
      return sizes_of(one.find("sizes"), made) &&
             each(
                 one.find("nanoseconds"),
                 [&](const Json& time) { return count(&time, made.nanoseconds.emplace_back()); }) &&
             made.nanoseconds.size() == to.images.size();
    };
    return text(value.find("kernel"), to.stem) && each(value.find("variants"), variant) &&
           each(value.find("problems"), problem);
  }

  static bool sizes_of(const Json* value, Measured& to) {
    if (!value || value->kind != Json::Kind::kObject) return false;
    for (const auto& [name, size] : value->members)
      if (!count(&size, to.sizes.emplace_back(name, 0).second)) return false;
    return true;
  }

  template <class Read>
  static bool each(const Json* list, Read read) {
    if (!list || list->kind != Json::Kind::kList) return false;
    for (const Json& item : list->items)
      if (!read(item)) return false;
    return true;
  }

  static bool text(const Json* value, std::string& to) {
    if (!value || value->kind != Json::Kind::kText) return false;
    to = value->text;
    return true;
  }

  static bool count(const Json* value, std::int64_t& to) {
    if (!value || !value->number) return false;
    to = *value->number;
    return true;
  }
};

inline bool is_of(const Overlay& overlay, const Device& device) {
  const TunedDevice& tuned = overlay.device;
  return tuned.name == device.name && tuned.capability == device.capability &&
         tuned.sm_count == device.sm_count;
}

/// What of a kernel differs from the measured one; empty if nothing does.
inline Result<std::string> stale(const TunedKernel& kernel, const TunedDevice& device,
                                 const Joined& bundles) {
  KERNELPACK_TRY(all, bundles.variants(kernel.stem));
  Joined::Variants able;
  for (const Variant* variant : *all)
    if (variant->runs_on(device.capability)) able.push_back(variant);
  for (const auto& [id, image] : kernel.images) {
    const auto same = [&wanted = id](const Variant* one) { return one->id == wanted; };
    const auto held = std::find_if(able.begin(), able.end(), same);
    if (held == able.end()) return bundles.where() + " holds no " + quoted(id);
    KERNELPACK_TRY(record, (*held)->bundle->find(id));
    if (hex(record.image_digest) != image)
      return bundles.where() + " holds other machine code of " + quoted(id);
  }
  std::set<std::string> names;
  for (const Variant* variant : able) {
    if (!kernel.places.count(std::string(variant->id)))
      return quoted(variant->id) + " of " + bundles.where() + " was not measured";
    const auto& known = variant->kernel->names;
    names.insert(known.begin(), known.begin() + variant->kernel->sizes);
  }
  for (const Measured& problem : kernel.problems) {
    std::set<std::string> given;
    for (const auto& [name, value] : problem.sizes) given.insert(name);
    if (given != names)
      return "a problem of " + quoted(kernel.stem) + " has other sizes than " +
             joined(names, [](const auto& name) { return name; });
  }
  return std::string();
}

/// The times in a file, checked against the machine code that is there.
inline Result<Overlay> overlay_of(const Joined& bundles, const std::string& path) {
  KERNELPACK_TRY(overlay, OverlayReader::read(path));
  for (const TunedKernel& kernel : overlay.kernels) {
    KERNELPACK_TRY(reason, stale(kernel, overlay.device, bundles));
    if (!reason.empty())
      return Error{ErrorKind::kBundle, "is stale: " + reason, path,
                   "measure again: `kernelpack tune`"};
  }
  return overlay;
}

/// Refuse times of a device that is not there.
inline Status check_devices(const Overlay& overlay, const Driver& driver) {
  for (const Device& device : driver.devices())
    if (is_of(overlay, device)) return {};
  const std::string there =
      joined(driver.devices(), [](const Device& device) { return device.text(); });
  return Error{ErrorKind::kBundle,
               "was measured on " + overlay.device.text() + "; here is " +
                   (there.empty() ? "no GPU" : there),
               overlay.path, "measure here: `kernelpack tune`"};
}

}  // namespace kernelpack::detail
