// What agents released to a channel, by who they are (checks/channels.py).
#pragma once

#include <unordered_map>
#include <vector>

#include "fences.hpp"

namespace kernelpack::checks {

constexpr size_t CHANNELS_KEPT = 32768;
constexpr int ANY = -1;      // whatever CTA
constexpr int OF_UNIT = -1;  // the reach of a unit's release

// A value by channel; of too many the one that was put first goes.
template <typename T>
class Kept {
public:
  T* find(const Channel& channel) {
    const auto found = items_.find(channel);
    return found == items_.end() ? nullptr : &found->second.value;
  }

  // The value of a channel, which is the youngest now.
  T& put(const Channel& channel) {
    const auto [found, is_new] = items_.try_emplace(channel);
    Item& item = found->second;
    if (!is_new) unlink(item);
    item.channel = &found->first;
    item.older = youngest_;
    item.younger = nullptr;
    (youngest_ ? youngest_->younger : oldest_) = &item;
    youngest_ = &item;
    if (items_.size() > CHANNELS_KEPT) drop();
    return item.value;
  }

private:
  struct Item {
    T value{};
    const Channel* channel = nullptr;
    Item *older = nullptr, *younger = nullptr;
  };

  void unlink(Item& item) {
    (item.older ? item.older->younger : oldest_) = item.younger;
    (item.younger ? item.younger->older : youngest_) = item.older;
  }
  void drop() {
    Item& item = *oldest_;
    const Channel channel = *item.channel;
    unlink(item);
    items_.erase(channel);
  }

  std::unordered_map<Channel, Item, ChannelHash> items_;
  Item *oldest_ = nullptr, *youngest_ = nullptr;
};

// How far a release reaches, and the CTA it came from.
struct Source {
  int reach, cta;
  bool operator==(const Source& o) const { return reach == o.reach && cta == o.cta; }
};

struct Told {
  Source source;
  Clock clock;
  Fences fences;
};

class Channels {
public:
  void put(const Channel& channel, Source source, const Clock& clock, const Fences& fences) {
    std::vector<Told>& content = kept_.put(channel);
    for (Told& told : content)
      if (told.source == source) {
        told.clock.learn(clock);
        told.fences.join(fences);
        return;
      }
    content.push_back({source, clock, fences});
  }

  const std::vector<Told>* get(const Channel& channel) { return kept_.find(channel); }

private:
  Kept<std::vector<Told>> kept_;
};

}  // namespace kernelpack::checks
