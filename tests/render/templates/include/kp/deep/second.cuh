#pragma once
#include <cuda/std/cstdint>
#include <kp/third.cuh>
