// Who answers for a bundle: a signature over its root, checked before its index is read.
//
// The root leads to the index, and the index to the digest of every image: whoever signs the root
// signs all that a reader uses.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ed25519.hpp"
#include "header.hpp"

namespace kernelpack::detail {

constexpr std::uint32_t kEd25519 = 1;
constexpr std::size_t kMaxKeyBytes = 1 << 20;

/// Public keys, and what checks signatures with them.
struct Keys {
  std::set<PublicKey> all;
  Ed25519 ed25519;
};

inline Result<std::string> read_key(const std::string& path) {
  std::string text(kMaxKeyBytes, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file) text.resize(std::fread(text.data(), 1, text.size(), file));
  const bool is_read = file && !std::ferror(file);
  const std::string reason = std::strerror(errno);
  if (file) std::fclose(file);
  if (is_read) return text;
  return Error{ErrorKind::kBundle, "cannot be read: " + reason, path, {}};
}

/// The public keys of files: a bundle signed by the owner of one of them is accepted.
inline Result<Keys> trusted(const std::vector<std::string>& paths) {
  KERNELPACK_TRY(ed25519, Ed25519::open());
  Keys keys{{}, ed25519};
  for (const std::string& path : paths) {
    KERNELPACK_TRY(text, read_key(path));
    const auto key = ed25519.public_key(text);
    if (!key)
      return Error{ErrorKind::kBundle,
                   "is not a public key of Ed25519 as a PEM file without a password", path,
                   "`openssl genpkey -algorithm ed25519 -out key.pem` makes a private key, "
                   "`openssl pkey -in key.pem -pubout -out key.pub.pem` its public one"};
    keys.all.insert(*key);
  }
  return keys;
}

/// Refuse a bundle that was not signed by the owner of one of the keys.
inline Status check_signature(const File& file, const Header& header, const Keys& keys) {
  const auto refusal = [&](std::string what, std::string hint) {
    return Error{ErrorKind::kBundle, std::move(what), file.where(), std::move(hint)};
  };
  const Extent& extent = header.at(Part::kSignature);
  if (!extent.size)
    return refusal("is not signed",
                   "`kernelpack sign` signs one; without `trust` a bundle need not be signed");
  if (extent.size != sizeof(SignatureRow))
    return file.refusal("a signature of " + decimal(extent.size) + " bytes");
  KERNELPACK_TRY(bytes, file.read(extent.offset, extent.size));
  const auto row = read_as<SignatureRow>(bytes.data());
  if (row.algorithm != kEd25519)
    return refusal(
        "signed by algorithm " + decimal(row.algorithm) + ", which this version does not know",
        "upgrade kernelpack");
  if (!keys.all.count(row.owner)) {
    const std::string known = joined(keys.all, [](const PublicKey& key) { return hex(key); });
    return refusal("signed by the key " + hex(row.owner) + ", which is not trusted",
                   "trusted: " + (known.empty() ? "none" : known));
  }
  std::string message(kMagic);
  message.append(reinterpret_cast<const char*>(header.root.data()), header.root.size());
  if (!keys.ed25519.verifies(message, row.signature, row.owner))
    return file.refusal("the signature is not of this bundle");
  return {};
}

}  // namespace kernelpack::detail
