// The CUDA runtime API: streams and events. Work on the device has ended when a call returns: one of
// the orders that streams allow, the one in which nothing overlaps. Host functions run in a thread
// of their own, one after the other of a stream; what comes behind them in it waits for them.
#include <chrono>
#include <future>
#include <memory>
#include <mutex>

#include "runtime.hpp"

using namespace standin;

namespace {

using Clock = std::chrono::steady_clock;
struct Event { bool recorded = false, timed = true; Clock::time_point at; };

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
  const int status = act(*found->second);
  return status ? status : broken();
}

// The streams that live, each with its last host function; the default ones are always there.
using Ending = std::shared_future<void>;
struct Streams {
  std::mutex lock;
  std::map<cudaStream_t, Ending> by_handle = {{nullptr, {}}, {cudaStreamLegacy, {}}, {cudaStreamPerThread, {}}};
};
Streams& streams() {
  static auto* one = new Streams;
  return *one;
}

bool is_default(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

// What a call on a stream must wait for: of the default stream, that of all.
std::vector<Ending> endings(cudaStream_t stream) {
  const std::lock_guard<std::mutex> guard(streams().lock);
  std::vector<Ending> found;
  for (const auto& [handle, ending] : streams().by_handle)
    if (ending.valid() && (handle == stream || is_default(stream))) found.push_back(ending);
  return found;
}

cudaError_t new_stream(cudaStream_t* stream) {
  const auto handle = reinterpret_cast<cudaStream_t>(new char);
  const int status = give(stream, handle);
  const std::lock_guard<std::mutex> guard(streams().lock);
  if (!status) streams().by_handle[handle] = {};
  return told(status);
}

// A stream must be one that lives; a CUDA status.
int known(cudaStream_t stream) {
  const std::lock_guard<std::mutex> guard(streams().lock);
  if (streams().by_handle.count(stream)) return 0;
  return complain("no stream has this handle", cudaErrorInvalidResourceHandle);
}

cudaError_t run_later(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return told(complain("a host function that is a null pointer"));
  if (const int status = known(stream)) return told(status);
  const auto before = endings(stream);
  const auto act = [before, function, data] {
    for (const Ending& ending : before) ending.wait();
    function(data);
  };
  const std::lock_guard<std::mutex> guard(streams().lock);
  streams().by_handle[stream] = std::async(std::launch::async, act).share();
  return cudaSuccess;
}

}  // namespace

int standin::settle(void* handle) {
  const auto stream = static_cast<cudaStream_t>(handle);
  if (const int status = known(stream)) return status;
  for (const Ending& ending : endings(stream)) ending.wait();
  return broken();
}

extern "C" {

cudaError_t cudaDeviceSynchronize() { return told(settle(nullptr)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return told(settle(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const int status = known(stream)) return told(status);
  for (const Ending& ending : endings(stream))
    if (ending.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return cudaErrorNotReady;
  return told(broken());
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return new_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return new_stream(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return new_stream(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (is_default(stream) || stream == cudaStreamPerThread)
    return told(complain("a default stream is destroyed", cudaErrorInvalidResourceHandle));
  if (const int status = settle(stream)) return told(status);
  const std::lock_guard<std::mutex> guard(streams().lock);
  return streams().by_handle.erase(stream), cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const int status = settle(stream);
  return told(status ? status : with(event, [](Event&) { return 0; }));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (const int failed = known(stream)) return told(failed);
  return told(give(status, cudaStreamCaptureStatusNone));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return told(refuse("cudaStreamBeginCapture"));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return run_later(stream, function, data);
}

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
  return told(status ? status : with(event, [](Event& of) { return of.at = Clock::now(), of.recorded = true, 0; }));
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return told(with(event, [](Event&) { return 0; })); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return cudaEventSynchronize(event); }
// The time is the emulator's, not a GPU's; never 0, so that a rate can be computed.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Clock::time_point from, to;
  const auto time_of = [](Clock::time_point& at) {
    return [&at](Event& of) {
      at = of.at;
      if (of.recorded && of.timed) return 0;
      return complain(of.timed ? "the time of an event that was never recorded" : "the time of an event without timing",
                      cudaErrorInvalidResourceHandle);
    };
  };
  int status = with(start, time_of(from));
  if (!status) status = with(end, time_of(to));
  if (status) return told(status);
  return told(give(milliseconds, std::chrono::duration<float, std::milli>(to - from).count() + 1e-3f));
}

}  // extern "C"
