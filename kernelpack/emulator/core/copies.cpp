// The groups by which a warp waits for copies (semantics/copies.py is the definition).
#include "copies.hpp"

namespace kernelpack {
namespace copies {

void Groups::commit(Mask lanes) {
  committed_.push_back({std::move(open_), lanes});
  open_.clear();
  done_ = 0;
}

void Groups::finish(Warp& warp, int64_t keep, Mask lanes) {
  int64_t over = -keep;
  for (const Group& group : committed_) over += (group.lanes & lanes) != 0;
  std::vector<Group> kept;
  for (Group& group : committed_) {
    if (over <= 0 || !(group.lanes & lanes)) {
      kept.push_back(std::move(group));
      continue;
    }
    --over;
    for (const OperationPtr& operation : group.operations) {
      warp.machine->engine.finish(operation);
      Acquire done{warp.agent, Channel{Channel::OPERATION, operation->number}};
      done.lanes = group.lanes & lanes;
      warp.machine->bus.acquire(done);
    }
  }
  committed_ = std::move(kept);
}

std::vector<OperationPtr> Groups::in_flight() {
  std::vector<OperationPtr> found;
  const auto note = [&](const OperationPtr& each) {
    if (!each->done) found.push_back(each);
  };
  for (const Group& group : committed_)
    for (const OperationPtr& each : group.operations) note(each);
  while (done_ < open_.size() && open_[done_]->done) ++done_;
  for (size_t i = done_; i < open_.size(); ++i) note(open_[i]);
  return found;
}

}  // namespace copies
}  // namespace kernelpack
