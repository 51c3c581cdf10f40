// The CUDA runtime API: events. Work on the device has ended when an event is recorded.
#include <chrono>
#include <memory>
#include <mutex>

#include "runtime.hpp"

using namespace standin;

namespace {

using Clock = std::chrono::steady_clock;
struct Event {
  bool recorded = false, timed = true;
  Clock::time_point at;
};

// The events that live, by handle.
struct Events {
  std::mutex lock;
  std::map<cudaEvent_t, std::unique_ptr<Event>> by_handle;
};
Events& events() {
  static auto* one = new Events;
  return *one;
}

int no_event() { return complain("no event has this handle", cudaErrorInvalidResourceHandle); }

// Do something with an event, which must live; a CUDA status.
template <class Act>
int with(cudaEvent_t handle, Act act) {
  const std::lock_guard<std::mutex> guard(events().lock);
  const auto found = events().by_handle.find(handle);
  if (found == events().by_handle.end()) return no_event();
  const int status = act(*found->second);
  return status ? status : broken();
}

}  // namespace

namespace standin {

int known_event(cudaEvent_t event) {
  return with(event, [](Event&) { return 0; });
}

}  // namespace standin

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto made = std::make_unique<Event>();
  made->timed = !(flags & cudaEventDisableTiming);
  const auto handle = reinterpret_cast<cudaEvent_t>(made.get());
  const int status = give(event, handle);
  const std::lock_guard<std::mutex> guard(events().lock);
  if (!status) events().by_handle[handle] = std::move(made);
  return told(status);
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard<std::mutex> guard(events().lock);
  return told(events().by_handle.erase(event) ? cudaSuccess : no_event());
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const int status = settle(stream);
  return told(status ? status : with(event, [](Event& of) {
    return of.at = Clock::now(), of.recorded = true, 0;
  }));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return told(with(event, [](Event&) { return 0; }));
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
// The time is the emulator's, not a GPU's; never 0, so that a rate can be computed.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Clock::time_point from, to;
  const auto time_of = [](Clock::time_point& at) {
    return [&at](Event& of) {
      at = of.at;
      if (of.recorded && of.timed) return 0;
      return complain(of.timed ? "the time of an event that was never recorded"
                               : "the time of an event without timing",
                      cudaErrorInvalidResourceHandle);
    };
  };
  int status = with(start, time_of(from));
  if (!status) status = with(end, time_of(to));
  if (status) return told(status);
  return told(
      give(milliseconds, std::chrono::duration<float, std::milli>(to - from).count() + 1e-3f));
}

}  // extern "C"
