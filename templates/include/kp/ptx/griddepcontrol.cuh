// Programmatic dependent launch (PDL). PTX ISA, "griddepcontrol".
// Both do nothing in a launch without such a dependency.
#pragma once

namespace kp::ptx {

// Wait until the grids before this one have ended and their writes are visible.
__device__ __forceinline__ void grid_dependency_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Let dependent grids start. They still wait for this grid's end (`grid_dependency_wait`) before
// they read.
__device__ __forceinline__ void launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace kp::ptx
