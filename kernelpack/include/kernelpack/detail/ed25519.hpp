// The one door to Ed25519, which libcrypto computes; keys are PEM files. libcrypto is opened when a
// program first asks who signed a bundle: one that never asks needs none.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "format.hpp"
#include "result.hpp"

// libcrypto's own opaque structs.
struct bio_st;
struct evp_pkey_st;
struct evp_md_ctx_st;

namespace kernelpack::detail {

/// How a public key of Ed25519 begins in DER, before its 32 bytes (RFC 8410).
constexpr std::uint8_t kKeyPrefix[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                       0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

/// The functions of libcrypto that are called; OpenSSL 1.1.1 and 3 export them alike.
struct CryptoApi {
  bio_st* (*BIO_new_mem_buf)(const void* bytes, int size);
  int (*BIO_free)(bio_st* bio);
  evp_pkey_st* (*PEM_read_bio_PUBKEY)(bio_st* bio, evp_pkey_st** key, void* ask, void* password);
  evp_pkey_st* (*d2i_PUBKEY)(evp_pkey_st** key, const std::uint8_t** der, long size);
  int (*i2d_PUBKEY)(const evp_pkey_st* key, std::uint8_t** der);
  void (*EVP_PKEY_free)(evp_pkey_st* key);
  evp_md_ctx_st* (*EVP_MD_CTX_new)();
  void (*EVP_MD_CTX_free)(evp_md_ctx_st* context);
  int (*EVP_DigestVerifyInit)(evp_md_ctx_st* context, void* key_context, const void* digest,
                              void* engine, evp_pkey_st* key);
  int (*EVP_DigestVerify)(evp_md_ctx_st* context, const std::uint8_t* signature,
                          std::size_t signature_size, const std::uint8_t* message,
                          std::size_t message_size);
  int (*ERR_set_mark)();
  int (*ERR_pop_to_mark)();
};

class Ed25519 {
public:
  /// Open the first of these libraries that there is.
  static Result<Ed25519> open(std::initializer_list<const char*> libraries = {"libcrypto.so.3",
                                                                              "libcrypto.so.1.1"}) {
    void* handle = nullptr;
    for (const char* library : libraries)
      if (!handle) handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    Ed25519 opened;
    if (handle && opened.find_all(handle)) return opened;
    return Error{ErrorKind::kBundle,
                 std::string("signatures need libcrypto, which cannot be opened: ") + ::dlerror(),
                 {},
                 "install OpenSSL, 1.1.1 or newer (Debian: libssl3; Red Hat: openssl-libs)"};
  }

  /// The public key of a PEM file's text; none where it holds no public key of Ed25519.
  std::optional<PublicKey> public_key(const std::string& pem) const {
    const Marked marked(api_);
    const Held<bio_st, int> bio(api_.BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                api_.BIO_free);
    // An empty password, so that nobody is asked for one on the terminal.
    char password[] = "";
    const Key key(api_.PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, password),
                  api_.EVP_PKEY_free);
    if (!key || api_.i2d_PUBKEY(key.get(), nullptr) != sizeof(Der)) return {};
    Der der;
    std::uint8_t* end = der.data();
    api_.i2d_PUBKEY(key.get(), &end);
    if (std::memcmp(der.data(), kKeyPrefix, sizeof kKeyPrefix)) return {};
    PublicKey found;
    std::memcpy(found.data(), der.data() + sizeof kKeyPrefix, sizeof found);
    return found;
  }

  /// Whether the owner of a public key signed a message.
  bool verifies(std::string_view message, const Signature& signature,
                const PublicKey& owner) const {
    const Marked marked(api_);
    Der der;
    std::memcpy(der.data(), kKeyPrefix, sizeof kKeyPrefix);
    std::memcpy(der.data() + sizeof kKeyPrefix, owner.data(), sizeof owner);
    const std::uint8_t* start = der.data();
    const Key key(api_.d2i_PUBKEY(nullptr, &start, sizeof der), api_.EVP_PKEY_free);
    const Held<evp_md_ctx_st, void> context(api_.EVP_MD_CTX_new(), api_.EVP_MD_CTX_free);
    return key && context &&
           api_.EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           api_.EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                                 reinterpret_cast<const std::uint8_t*>(message.data()),
                                 message.size()) == 1;
  }

private:
  using Der = std::array<std::uint8_t, sizeof kKeyPrefix + sizeof(PublicKey)>;
  template <class Struct, class Freed>
  using Held = std::unique_ptr<Struct, Freed (*)(Struct*)>;
  using Key = Held<evp_pkey_st, void>;

  /// Leaves the thread's queue of libcrypto's errors as it was: it is the program's.
  struct Marked {
    explicit Marked(const CryptoApi& of) : api(of) { api.ERR_set_mark(); }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;
    ~Marked() { api.ERR_pop_to_mark(); }
    const CryptoApi& api;
  };

  Ed25519() = default;

  bool find_all(void* handle) {
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, symbol));
      return function != nullptr;
    };
#define KERNELPACK_FIND(call) find(api_.call, #call)
    return KERNELPACK_FIND(BIO_new_mem_buf) && KERNELPACK_FIND(BIO_free) &&
           KERNELPACK_FIND(PEM_read_bio_PUBKEY) && KERNELPACK_FIND(d2i_PUBKEY) &&
           KERNELPACK_FIND(i2d_PUBKEY) && KERNELPACK_FIND(EVP_PKEY_free) &&
           KERNELPACK_FIND(EVP_MD_CTX_new) && KERNELPACK_FIND(EVP_MD_CTX_free) &&
           KERNELPACK_FIND(EVP_DigestVerifyInit) && KERNELPACK_FIND(EVP_DigestVerify) &&
           KERNELPACK_FIND(ERR_set_mark) && KERNELPACK_FIND(ERR_pop_to_mark);
#undef KERNELPACK_FIND
  }

  CryptoApi api_{};
};

}  // namespace kernelpack::detail
