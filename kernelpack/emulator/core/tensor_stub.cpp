// Until the tensor rows are here.
#include "machine.hpp"

namespace kernelpack {
void settle(Warp&) {}
}  // namespace kernelpack
