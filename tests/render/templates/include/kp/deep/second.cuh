#pragma once
#include <kp/third.cuh>
#include <cuda/std/cstdint>
