// The CUDA runtime API: streams. Work on the device has ended when a call returns: one of
// the orders that streams allow, the one in which nothing overlaps. Host functions run in a thread
// of their own, one after the other of a stream; later work of the stream waits for them.
#include <algorithm>
#include <future>
#include <mutex>

#include "runtime.hpp"

using namespace standin;

namespace {

// The streams that live, each with its last host function and what was asked for when it was made;
// the default ones are always there.
using Ending = std::shared_future<void>;
struct Stream {
  Ending ending;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  CUcontext context = nullptr;  // null: whichever is current
};
struct Streams {
  std::mutex lock;
  unsigned long long last = 3;
  std::map<cudaStream_t, Stream> by_handle = {{nullptr, {{}, 0, 0, 1, nullptr}},
                                              {cudaStreamLegacy, {{}, 0, 0, 1, nullptr}},
                                              {cudaStreamPerThread, {{}, 0, 0, 2, nullptr}}};
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
  for (const auto& [handle, one] : streams().by_handle)
    if (one.ending.valid() && (handle == stream || is_default(stream))) found.push_back(one.ending);
  return found;
}

cudaError_t new_stream(cudaStream_t* stream, unsigned flags, int priority) {
  const auto handle = reinterpret_cast<cudaStream_t>(new char);
  const int status = give(stream, handle);
  const std::lock_guard<std::mutex> guard(streams().lock);
  if (!status)
    streams().by_handle[handle] = {{}, flags, priority, ++streams().last, current_context()};
  return told(status);
}

// A stream must be one that lives; a CUDA status.
int known(cudaStream_t stream) {
  const std::lock_guard<std::mutex> guard(streams().lock);
  if (streams().by_handle.count(stream)) return 0;
  return complain("no stream has this handle", cudaErrorInvalidResourceHandle);
}

// Answer a question about a stream, which must live.
template <class T, class Ask>
cudaError_t asked(cudaStream_t stream, T* answer, Ask ask) {
  if (const int status = known(stream)) return told(status);
  const std::lock_guard<std::mutex> guard(streams().lock);
  return told(give(answer, ask(streams().by_handle[stream])));
}

template <class Act>
cudaError_t run_later(cudaStream_t stream, Act last) {
  if (const int status = known(stream)) return told(status);
  if (const int status = settle_launches()) return told(status);
  const auto before = endings(stream);
  const auto act = [before, last] {
    for (const Ending& ending : before) ending.wait();
    last();
  };
  const std::lock_guard<std::mutex> guard(streams().lock);
  streams().by_handle[stream].ending = std::async(std::launch::async, act).share();
  return cudaSuccess;
}

}  // namespace

int standin::context_of(const void* handle, CUcontext* context) {
  const auto stream = static_cast<cudaStream_t>(const_cast<void*>(handle));
  if (const int status = known(stream)) return status;
  const std::lock_guard<std::mutex> guard(streams().lock);
  const CUcontext own = streams().by_handle[stream].context;
  return give(context, own ? own : current_context());
}

int standin::ready(const void* handle) {
  const auto stream = static_cast<cudaStream_t>(const_cast<void*>(handle));
  if (const int status = known(stream)) return status;
  for (const Ending& ending : endings(stream)) ending.wait();
  return broken();
}
int standin::settle(const void* handle) {
  const int status = ready(handle);
  return status ? status : settle_launches();
}

extern "C" {

cudaError_t cudaDeviceSynchronize() { return told(settle(nullptr)); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return told(settle(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const int status = known(stream)) return told(status);
  for (const Ending& ending : endings(stream))
    if (ending.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return cudaErrorNotReady;
  return told(settle(stream));
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return new_stream(stream, 0, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return new_stream(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return new_stream(stream, flags, std::max(std::min(priority, 0), -5));
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return asked(stream, flags, [](const Stream& one) { return one.flags; });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return asked(stream, priority, [](const Stream& one) { return one.priority; });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return asked(stream, id, [](const Stream& one) { return one.id; });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* ordinal) {
  return asked(stream, ordinal, [](const Stream&) { return 0; });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (is_default(stream) || stream == cudaStreamPerThread)
    return told(complain("a default stream is destroyed", cudaErrorInvalidResourceHandle));
  if (const int status = settle(stream)) return told(status);
  const std::lock_guard<std::mutex> guard(streams().lock);
  return streams().by_handle.erase(stream), cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const int status = settle(stream);
  return told(status ? status : known_event(event));
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (const int failed = known(stream)) return told(failed);
  return told(give(status, cudaStreamCaptureStatusNone));
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return told(give(mode, cudaStreamCaptureModeGlobal));
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void*, size_t, unsigned) {
  return told(settle(stream));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return told(complain("a host function that is a null pointer"));
  return run_later(stream, [function, data] { function(data); });
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  if (!callback) return told(complain("a callback that is a null pointer"));
  return run_later(stream, [stream, callback, data] {
    callback(stream, static_cast<cudaError_t>(broken()), data);
  });
}

}  // extern "C"
