// What the core does where it is not sure: it gives up, and the Python engine runs the launch
// again.
//
// The Python engine is the definition of every instruction and of every finding. The core says
// nothing about a kernel: it either runs a launch to its end with nothing to remark, or it doubts.
// A doubt costs time and nothing else, so every rule that a kernel may break, every fault, every
// form that is not written here and every result that is not certain to the last bit is a doubt.
#pragma once

#include <string>
#include <utility>

namespace kernelpack {

struct Doubt {
  std::string why;
};

[[noreturn]] inline void doubt(std::string why) { throw Doubt{std::move(why)}; }

}  // namespace kernelpack
