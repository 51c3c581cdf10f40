#pragma once
#include <kp/first.cuh>
__device__ inline int third() { return 3; }
