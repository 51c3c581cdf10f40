// The CUDA runtime API: streams and events. Everything has ended when a call returns: one of the
// orders that streams allow, the one in which nothing overlaps.
#include <chrono>
#include <memory>
#include <mutex>

#include "runtime.hpp"

using namespace standin;

namespace {

using Clock = std::chrono::steady_clock;
struct Event { Clock::time_point at; };

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
template <class Act> int with(cudaEvent_t handle, Act act) {
  const std::lock_guard<std::mutex> guard(events().lock);
  const auto found = events().by_handle.find(handle);
  if (found == events().by_handle.end()) return no_event();
  return act(*found->second), broken();
}

cudaError_t new_stream(cudaStream_t* stream) {
  return told(give(stream, reinterpret_cast<cudaStream_t>(new char)));
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceSynchronize() { return told(broken()); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return told(broken()); }
cudaError_t cudaStreamQuery(cudaStream_t) { return told(broken()); }
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return new_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return new_stream(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return new_stream(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return told(broken()); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return told(give(status, cudaStreamCaptureStatusNone));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return told(refuse("cudaStreamBeginCapture"));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  if (!function) return told(complain("a host function that is a null pointer"));
  return function(data), cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  auto made = std::make_unique<Event>(Event{Clock::now()});
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
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return told(with(event, [](Event& of) { of.at = Clock::now(); }));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return told(with(event, [](Event&) {})); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
// The time is the emulator's, not a GPU's; never 0, so that a rate can be computed.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Clock::time_point from, to;
  int status = with(start, [&](Event& of) { from = of.at; });
  if (!status) status = with(end, [&](Event& of) { to = of.at; });
  if (status) return told(status);
  return told(give(milliseconds, std::chrono::duration<float, std::milli>(to - from).count() + 1e-3f));
}

}  // extern "C"
