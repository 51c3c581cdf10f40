// Digests of several short messages, two at a time: a processor that has instructions for SHA-256
// waits for each in turn, and could do another message's meanwhile.
#pragma once

#include <algorithm>
#include <vector>

#include "format.hpp"

namespace kernelpack::detail {

/// A byte and at most a page after it, padded as SHA-256 wants it, and how far its digest is.
class Message {
public:
  Message(char prefix, std::string_view data) {
    blocks_[0] = static_cast<std::uint8_t>(prefix);
    const std::size_t held = 1 + data.copy(reinterpret_cast<char*>(blocks_) + 1, kPageBytes);
    count_ = sha256::pad(blocks_, held, 8 * held);
  }

  std::size_t left() const { return count_ - done_; }
  const std::uint8_t* rest() const { return blocks_ + done_ * sha256::kBlockBytes; }
  sha256::State& state() { return state_; }
  void advance(std::size_t count) { done_ += count; }

  /// Its digest, once nothing is left.
  Digest digest() const { return sha256::bytes_of(state_); }

private:
  std::uint8_t blocks_[kPageBytes + sha256::kBlockBytes];
  std::size_t count_, done_ = 0;
  sha256::State state_ = sha256::kStart;
};

/// Make the digests of messages.
inline void finish(std::vector<Message>& messages, const sha256::Ways& ways = sha256::fastest()) {
  auto waiting = messages.begin();
  const auto next = [&]() -> Message* { return waiting == messages.end() ? nullptr : &*waiting++; };
  Message* lanes[] = {next(), next()};
  while (lanes[0] && lanes[1]) {
    const std::size_t count = std::min(lanes[0]->left(), lanes[1]->left());
    ways.two(lanes[0]->state(), lanes[0]->rest(), lanes[1]->state(), lanes[1]->rest(), count);
    for (Message*& lane : lanes) {
      lane->advance(count);
      if (!lane->left()) lane = next();
    }
  }
  for (Message* lane : lanes) {
    if (!lane) continue;
    ways.one(lane->state(), lane->rest(), lane->left());
    lane->advance(lane->left());
  }
}

}  // namespace kernelpack::detail
