// JSON as values, for the one file that loaders read beside bundles. Numbers are integers that fit
// in 64 bits, without a sign; any other is kept as a number that nobody can use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text.hpp"

namespace kernelpack::detail {

/// A value: a text, a number, a list, an object, or one of the words.
struct Json {
  enum class Kind { kWord, kNumber, kText, kList, kObject };

  Kind kind = Kind::kWord;
  std::optional<std::int64_t> number = {};
  std::string text = {};
  std::vector<Json> items = {};                            // of a list
  std::vector<std::pair<std::string, Json>> members = {};  // of an object, in their order

  /// A member of an object, the last of its name; none where there is none, or this is not an
  /// object.
  const Json* find(std::string_view name) const {
    const Json* found = nullptr;
    for (const auto& [key, value] : members)
      if (key == name) found = &value;
    return found;
  }
};

/// Reads one value that is the whole of a text; none where it is not JSON.
class JsonReader {
public:
  static std::optional<Json> read(std::string_view text) {
    if (!is_utf8(text)) return {};
    JsonReader reader(text);
    Json value;
    const bool is_whole = reader.value(value, 0) && reader.next() == '\0' && reader.left_.empty();
    return is_whole ? std::optional(std::move(value)) : std::nullopt;
  }

private:
  static constexpr int kDeepest = 32;

  explicit JsonReader(std::string_view text) : left_(text) {}

  /// The next letter that is no blank; 0 at the end.
  char next() {
    const std::size_t blanks = left_.find_first_not_of(" \t\r\n");
    left_.remove_prefix(blanks == left_.npos ? left_.size() : blanks);
    return left_.empty() ? '\0' : left_.front();
  }

  bool take(char letter) {
    if (next() != letter || left_.empty()) return false;
    left_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    if (left_.substr(0, word.size()) != word) return false;
    left_.remove_prefix(word.size());
    return true;
  }

  bool value(Json& to, int depth) {
    if (depth > kDeepest) return false;
    switch (next()) {
      case '{': return object(to, depth);
      case '[': return list(to, depth);
      case '"': to.kind = Json::Kind::kText; return text(to.text);
      case 't': return take_word("true");
      case 'f': return take_word("false");
      case 'n': return take_word("null");
      default: return number(to);
    }
  }

  bool object(Json& to, int depth) {
    to.kind = Json::Kind::kObject;
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string name;
      Json member;
      if (next() != '"' || !text(name) || !take(':') || !value(member, depth + 1)) return false;
      to.members.emplace_back(std::move(name), std::move(member));
    } while (take(','));
    return take('}');
  }

  bool list(Json& to, int depth) {
    to.kind = Json::Kind::kList;
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      to.items.emplace_back();
      if (!value(to.items.back(), depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool text(std::string& to) {
    left_.remove_prefix(1);
    while (!left_.empty()) {
      const char letter = left_.front();
      left_.remove_prefix(1);
      if (letter == '"') return true;
      if (static_cast<unsigned char>(letter) < 0x20) return false;
      if (letter != '\\')
        to += letter;
      else if (!escape(to))
        return false;
    }
    return false;
  }

  bool escape(std::string& to) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kLetters = "\"\\/\b\f\n\r\t";
    if (left_.empty()) return false;
    const char name = left_.front();
    left_.remove_prefix(1);
    if (name == 'u') return code_point(to);
    const std::size_t place = kNames.find(name);
    if (place == kNames.npos) return false;
    to += kLetters[place];
    return true;
  }

  /// A character by its number; two numbers, a pair of surrogates, of one above U+FFFF.
  bool code_point(std::string& to) {
    unsigned code = 0, low = 0;
    if (!four_digits(code) || (0xDC00 <= code && code < 0xE000)) return false;
    if (0xD800 <= code && code < 0xDC00) {
      if (!take_word("\\u") || !four_digits(low) || low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    const auto tail = [](unsigned bits) { return static_cast<char>(0x80 | (bits & 0x3F)); };
    if (code < 0x80) {
      to += static_cast<char>(code);
    } else if (code < 0x800) {
      to += {static_cast<char>(0xC0 | code >> 6), tail(code)};
    } else if (code < 0x10000) {
      to += {static_cast<char>(0xE0 | code >> 12), tail(code >> 6), tail(code)};
    } else {
      to += {static_cast<char>(0xF0 | code >> 18), tail(code >> 12), tail(code >> 6), tail(code)};
    }
    return true;
  }

  bool four_digits(unsigned& code) {
    if (left_.size() < 4) return false;
    for (const char digit : left_.substr(0, 4)) {
      const std::size_t value = std::string_view("0123456789abcdef").find(lower({&digit, 1}));
      if (value == std::string_view::npos) return false;
      code = code * 16 + static_cast<unsigned>(value);
    }
    left_.remove_prefix(4);
    return true;
  }

  bool number(Json& to) {
    to.kind = Json::Kind::kNumber;
    const std::size_t size = std::min(left_.find_first_not_of("0123456789+-.eE"), left_.size());
    const std::string_view word = left_.substr(0, size);
    left_.remove_prefix(size);
    const bool is_count = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    if (is_count && word.size() > 1 && word.front() == '0') return false;
    UnsignedWide value = 0;
    for (const char digit : word.substr(0, is_count ? 20 : 0))
      value = value * 10 + static_cast<unsigned>(digit - '0');
    if (is_count && word.size() < 20 && value <= INT64_MAX)
      to.number = static_cast<std::int64_t>(value);
    return !word.empty();
  }

  std::string_view left_;
};

}  // namespace kernelpack::detail
