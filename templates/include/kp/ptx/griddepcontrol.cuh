// Programmatic dependent launch. PTX ISA, "griddepcontrol".
// Both do nothing in a launch that has no such dependency.
#pragma once

namespace kp::ptx {

// Wait until the grids this one depends on have ended and their writes are visible.
__device__ __forceinline__ void grid_dependency_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Let the grids that depend on this one start; they still wait for its end before they read.
__device__ __forceinline__ void launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace kp::ptx
