// The CUDA runtime API: streams and events. Everything has ended when a call returns: one of the
// orders that streams allow, the one in which nothing overlaps.
#include <chrono>

#include "runtime.hpp"

using namespace standin;

namespace {

using Clock = std::chrono::steady_clock;
struct Event { Clock::time_point at; };

Event* event_of(cudaEvent_t handle) { return reinterpret_cast<Event*>(handle); }

cudaError_t new_stream(cudaStream_t* stream) {
  *stream = reinterpret_cast<cudaStream_t>(new char);
  return cudaSuccess;
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
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return told(refuse("cudaStreamBeginCapture"));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  return function(data), cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event{Clock::now()});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event_of(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event_of(event)->at = Clock::now();
  return told(broken());
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return told(broken()); }
cudaError_t cudaEventQuery(cudaEvent_t) { return told(broken()); }
// The time is the emulator's, not a GPU's; never 0, so that a rate can be computed.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::chrono::duration<float, std::milli> passed = event_of(end)->at - event_of(start)->at;
  *milliseconds = passed.count() + 1e-3f;
  return cudaSuccess;
}

}  // extern "C"
