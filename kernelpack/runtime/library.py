"""Machine code to a function that can be launched: loaded once, made ready once for each device.

Loading goes through `cuLibrary*`, which knows no context: one load serves every device. Nothing is
unloaded on its own, not even at exit, because a graph of the program may still hold a kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from kernelpack.errors import SelectionError
from kernelpack.runtime.driver import DEINITIALIZED, NOT_FOUND, Device, Driver
from kernelpack.spec.arch import PORTABLE_CLUSTER
from kernelpack.spec.variant import Variant

# CUDA driver API, CUfunction_attribute
_MAX_DYNAMIC_SHARED_BYTES = 8
_NON_PORTABLE_CLUSTER = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Machine code of one variant and what its bundle says of it; bytes."""

    data: bytes
    shared_bytes: int = 0  # static shared memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A kernel of the driver, ready to be launched on one device.

    Attributes:
        variant: what it was compiled from.
        handle: the CUkernel.
        loaded: the CUfunction, which is the kernel in the device's context.
        device: the device its attributes were set for.

    """

    variant: Variant
    handle: int
    loaded: int
    device: Device


class Functions:
    """The functions of one bundle. Shared by threads; a function that is ready costs no lock."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._ready: dict[tuple[str, int], Function] = {}
        self._kernels: dict[str, tuple[int, int, Image]] = {}  # library, kernel, image
        self._lock = Lock()

    def find(self, variant_id: str, ordinal: int) -> Function | None:
        """The function, where it has been made ready before."""
        return self._ready.get((variant_id, ordinal))

    def make(self, variant: Variant, image: Callable[[], Image], ordinal: int) -> Function:
        """Load the variant's machine code if nobody has, and make it ready on a device.

        Raises:
            SelectionError: the machine code holds no kernel for this device.
            DriverError: the driver refuses to load it.

        """
        with self._lock:
            known = self._ready.get((variant.id, ordinal))
            if known is None:
                known = self._prepare(variant, image, self._driver.device(ordinal))
                self._ready[variant.id, ordinal] = known
            return known

    def unload(self) -> None:
        """Take the machine code out of the driver: no graph and no launch may still hold it.

        Raises:
            DriverError: the driver refused to unload some of it; the first of its errors. The rest
                is unloaded.

        """
        with self._lock:
            loaded = [library for library, _, _ in self._kernels.values()]
            self._ready.clear()
            self._kernels.clear()
        codes = [self._driver.attempt("cuLibraryUnload", library)[0] for library in loaded]
        for code in codes:
            if code not in (0, DEINITIALIZED):  # a driver that has shut down has unloaded it
                raise self._driver.error("cuLibraryUnload", code)

    def _prepare(self, variant: Variant, image: Callable[[], Image], device: Device) -> Function:
        with self._driver.current(device.ordinal):
            if variant.id not in self._kernels:
                self._kernels[variant.id] = self._load(variant, image(), device)
            _, kernel, held = self._kernels[variant.id]
            loaded = int(self._driver.call("cuKernelGetFunction", kernel))  # lazy loading ends here
            for attribute, value in attributes(variant, held).items():
                kind = self._driver.api.CUfunction_attribute(attribute)
                self._driver.call("cuKernelSetAttribute", kind, value, kernel, device.ordinal)
        return Function(variant=variant, handle=kernel, loaded=loaded, device=device)

    def _load(self, variant: Variant, image: Image, device: Device) -> tuple[int, int, Image]:
        library = int(
            self._driver.call("cuLibraryLoadData", image.data, None, None, 0, None, None, 0)
        )
        code, kernel = self._driver.attempt("cuLibraryGetKernel", library, variant.entry.encode())
        if not code:
            return library, int(kernel), image
        self._driver.attempt("cuLibraryUnload", library)
        if code != NOT_FOUND:
            raise self._driver.error("cuLibraryGetKernel", code)
        # Machine code for another device loads with success and fails only here.
        raise SelectionError(
            f"the {self._driver} finds no kernel `{variant.entry}` for {device} in the "
            f"machine code of {variant.arch}",
            where=variant.id,
        )


def attributes(variant: Variant, image: Image) -> dict[int, int]:
    """Attributes to set before a launch: the driver's number → value.

    A launch whose sizes are not known yet is allowed the most its target has.
    """
    limits = variant.arch.limits
    dynamic = variant.launch.shared_bytes.constant
    if dynamic is None:
        dynamic = limits.shared_bytes - image.shared_bytes
    blocks = 1
    for side in variant.launch.cluster:
        constant = side.constant
        blocks *= limits.cluster if constant is None else constant
    wanted = {_MAX_DYNAMIC_SHARED_BYTES: dynamic} if dynamic else {}
    return wanted | ({_NON_PORTABLE_CLUSTER: 1} if blocks > PORTABLE_CLUSTER else {})
