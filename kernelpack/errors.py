"""The errors a user can meet. Each says where, what, and what would be right.

An error of ours (a bug in kernelpack) is an `assert`; a fault of a kernel is a `Finding` of the
emulator. Everything else that can go wrong is a child of `KernelpackError`.
"""


class KernelpackError(Exception):
    """A request that cannot be served: `where: what`, then a hint that says what would be right.

    Args:
        what: one sentence, no final period.
        where: a place the user knows: `path:line:column`, a variant id, an argument name.
        hint: what would be right, or what to do next.

    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(what, where, hint)

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\nhint: {self.hint}" if self.hint else head

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the keyword arguments when an error crosses a process border."""
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def install_extra(name: str) -> str:
    """The hint where an extra's packages are missing; kernelpack itself is on no package index."""
    return f"pip install '.[{name}]' in a checkout of kernelpack"


def _rebuild(kind: type[KernelpackError], what: str, where: str, hint: str) -> KernelpackError:
    return kind(what, where=where, hint=hint)


class ManifestError(KernelpackError):
    """A manifest does not say something that can be built."""


class ExpressionError(KernelpackError):
    """An integer expression does not parse, names something unknown, overflows or divides by 0."""


class RenderError(KernelpackError):
    """A template cannot be rendered for a variant."""


class ToolchainError(KernelpackError):
    """A compiler is missing, inconsistent, or known to be wrong for the request."""


class CompileError(KernelpackError):
    """A compiler refused a source; `where` is the template's line."""


class BudgetError(KernelpackError):
    """A compiled kernel uses more registers, memory or spills than its manifest allows."""


class CacheError(KernelpackError):
    """The cache cannot be read or written."""


class BundleError(KernelpackError):
    """A file is not a bundle this version can read, or its bytes are not what its index says."""


class ProblemError(KernelpackError):
    """The arguments of a call do not describe a problem the kernel is defined for."""


class OracleError(KernelpackError):
    """An oracle is missing, or is not what the kernel needs."""


class SelectionError(KernelpackError):
    """No variant of the bundle serves this problem on this device."""


class UnservedError(ProblemError, SelectionError):
    """No variant of the bundle takes such an array or size: another is right, or another bundle."""


class TensorMapError(KernelpackError):
    """A tensor map breaks a rule of the TMA unit."""


class DriverError(KernelpackError):
    """The CUDA driver is missing, too old, or answered with an error."""


class DeviceMemoryError(DriverError):
    """The device has less memory left than is asked for."""


class CaptureError(DriverError):
    """A stream is being captured and the request would need work that a capture forbids."""


class ForkError(DriverError):
    """A library loaded before `fork()` is used after it."""


class UnsupportedError(KernelpackError):
    """The emulator does not model this; nothing was approximated."""
