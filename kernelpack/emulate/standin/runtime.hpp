// What the files of the CUDA runtime API share: the last error of a thread, and kernels by handle.
#pragma once

#include "wire.hpp"

namespace standin {

// Keep a failure as the thread's last error, as the runtime does, and hand it on.
cudaError_t told(int status);
// Say that a call is not modelled; a CUDA status, kept as the last error.
int refused(const char* what);
// The kernel behind a host function or a handle; null if there is none.
Kernel* kernel_of(const void* function);
// The numbers of a launch from a configuration; false if that is a null pointer.
bool read(const cudaLaunchConfig_t* config, Shape& shape);
// The device address and size of a __device__ or __constant__ variable; false if unknown.
bool symbol_of(const void* variable, void** address, size_t* size);

// An event must be one that lives; a CUDA status.
int known_event(cudaEvent_t event);

// The device is reset: what nvcc registered is loaded anew when it is next asked for.
void forget_modules();

}  // namespace standin
