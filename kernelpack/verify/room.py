"""Whether this machine has room for a launch on the emulator: asked before an array is made."""

from collections.abc import Mapping

from kernelpack.errors import ProblemError
from kernelpack.spec.launch import bytes_of
from kernelpack.spec.variant import Variant
from kernelpack.workers.memory import available_bytes

_COPIES = 3
"""Times an argument's bytes are held: the caller's, the emulated ones, and the state of those."""


def check_launch(variant: Variant, sizes: Mapping[str, float], name: str) -> None:
    """Refuse a launch whose arguments fill the machine's memory.

    Args:
        variant: the kernel.
        sizes: the problem and the device, name → integer.
        name: the problem's.

    Raises:
        ProblemError: they do.

    """
    check(_COPIES * sum(bytes_of(variant, sizes).values()), name)


def check(needed: int, name: str) -> None:
    """Refuse a problem that takes more bytes than can still be had.

    Raises:
        ProblemError: says how many there are.

    """
    available = available_bytes()
    if needed > available:
        raise ProblemError(
            f"{name} needs {needed >> 20} MiB; this machine has {available >> 20} free",
            hint="give smaller sizes",
        )
