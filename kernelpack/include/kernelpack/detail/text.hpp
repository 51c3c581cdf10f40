// Texts of messages, spelt as Python spells them: numbers, tuples, lists; and what UTF-8 is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kernelpack::detail {

__extension__ typedef __int128 Wide;
/// For sums and products of numbers from a file, which may leave 64 bits.
__extension__ typedef unsigned __int128 UnsignedWide;

/// A number in a base up to 16, without a sign.
inline std::string digits(UnsignedWide value, unsigned base) {
  std::string text;
  do text.insert(text.begin(), "0123456789abcdef"[static_cast<unsigned>(value % base)]);
  while (value /= base);
  return text;
}

inline UnsignedWide magnitude(Wide value) {
  return value < 0 ? -static_cast<UnsignedWide>(value) : static_cast<UnsignedWide>(value);
}

inline std::string decimal(Wide value) {
  return (value < 0 ? "-" : "") + digits(magnitude(value), 10);
}

/// A number as `hex()` gives it: `0x1f`, `-0x10`.
inline std::string hexadecimal(Wide value) {
  return (value < 0 ? "-0x" : "0x") + digits(magnitude(value), 16);
}

/// A number as the format `g` gives it: six digits, no zeros at the end.
inline std::string general(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

inline std::string quoted(std::string_view word) { return "`" + std::string(word) + "`"; }

inline bool is_letter_or_digit(char letter) {
  return ('0' <= letter && letter <= '9') || ('A' <= letter && letter <= 'Z') ||
         ('a' <= letter && letter <= 'z');
}

/// A name with small letters, of ASCII alone.
inline std::string lower(std::string_view name) {
  std::string text(name);
  for (char& letter : text)
    if ('A' <= letter && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

/// UTF-8 as a symbol: `_` for what is neither a letter nor a digit of ASCII, one for each
/// character.
inline std::string symbol_of(std::string_view words) {
  std::string symbol;
  for (const char letter : words)
    if ((letter & 0xC0) != 0x80) symbol += is_letter_or_digit(letter) ? letter : '_';
  return symbol;
}

template <class Items, class Show>
std::string joined(const Items& items, Show show, std::string_view between = ", ") {
  std::string text;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) text += between;
    text += show(item);
    is_first = false;
  }
  return text;
}

/// Numbers as a tuple prints them: `()`, `(1,)`, `(1, 2)`.
template <class Numbers>
std::string tuple(const Numbers& numbers) {
  const std::string inside = joined(numbers, [](auto number) { return decimal(number); });
  return "(" + inside + (numbers.size() == 1 ? ",)" : ")");
}

/// Whether bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(std::string_view bytes) {
  const auto at = [&](std::size_t place) { return static_cast<unsigned char>(bytes[place]); };
  std::size_t i = 0;
  while (i < bytes.size()) {
    const unsigned lead = at(i);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || size > bytes.size() - i) return false;
    for (std::size_t next = 1; next < size; ++next)
      if ((at(i + next) & 0xC0) != 0x80) return false;
    if ((lead == 0xE0 && at(i + 1) < 0xA0) || (lead == 0xED && at(i + 1) > 0x9F) ||
        (lead == 0xF0 && at(i + 1) < 0x90) || (lead == 0xF4 && at(i + 1) > 0x8F))
      return false;
    i += size;
  }
  return true;
}

}  // namespace kernelpack::detail
