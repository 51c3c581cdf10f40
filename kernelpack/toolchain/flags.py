"""The flags of every compiler: constants, the same for each kernel, and part of each cache key.

ptxas writes its flags into the cubin, so `-v` (which reports spills) is always among them.
"""

from kernelpack.spec.arch import Arch

STANDARD = "-std=c++17"

# A template declares all its constants; a variant need not use each, nor reach each branch.
QUIET = "-diag-suppress=177,186,128,111,550"

FRONT_END_FLAGS = {
    "nvrtc": (STANDARD, QUIET, "-lineinfo", "-default-device"),
    "nvcc": (STANDARD, QUIET, "-lineinfo", "-expt-relaxed-constexpr", "--ptx", "-x=cu"),
}
"""`-lineinfo` gives the PTX the template's lines, for ptxas's errors and the emulator's faults.

Unannotated `constexpr` functions may be called on the device with both; others want `__device__`.
"""

PTXAS_FLAGS = ("-v", "-lineinfo", "-suppress-debug-info")
"""Debug sections hold the PTX text and line numbers: a bundle ships machine code alone.

ptxas takes the second of these flags only beside the first; the machine code is the same without.
"""


def front_end_arch(arch: Arch) -> str:
    """The option that asks a front end for PTX of a target: `sm_100a` is `compute_100a`."""
    return f"-arch={arch.name.replace('sm_', 'compute_')}"


def ptxas_arch(arch: Arch) -> tuple[str, str]:
    """The option that asks ptxas for machine code of a target."""
    return "-arch", arch.name
