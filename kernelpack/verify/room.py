"""Whether this machine has room for a launch on the emulator: asked before an array is made."""

from collections.abc import Mapping
from math import prod

from kernelpack.errors import ProblemError
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import is_absent
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
    present = (a for a in variant.arguments if not is_absent(a, sizes))
    each = (a.dtype.bytes_of(prod(evaluate(side, sizes) for side in a.shape)) for a in present)
    check(_COPIES * sum(each), name)


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
