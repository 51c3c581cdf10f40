"""A plan to the GPU: parameters packed once, then one `cuLaunchKernelEx` a launch.

The two structures below are libcuda's ABI (cuda.h, CUlaunchConfig and CUlaunchAttribute), held
here so that a launch writes one pointer and makes one call. The driver copies the parameters
before it returns, so they may be patched at once for the next launch.
"""

import ctypes

from kernelpack.errors import BundleError, ProblemError
from kernelpack.runtime.bound import Bind, fastest_bind
from kernelpack.runtime.driver import DEFAULT_STREAMS, Driver, fork_error
from kernelpack.runtime.library import Function
from kernelpack.runtime.tensormap import Encode
from kernelpack.spec.launch import Dim3, Plan, PlanArgument, Pointer, Scalar
from kernelpack.spec.params import TENSOR_MAP_ALIGN, Slot, block_bytes, layout
from kernelpack.spec.tensormap import TensorMap
from kernelpack.spec.variant import Variant

CLUSTER_DIMENSION, _PROGRAMMATIC_STREAM = 4, 6  # CUlaunchAttributeID


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number, then a union of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_uint32),
        ("padding", ctypes.c_uint32),
        ("value", ctypes.c_uint32 * 16),
    )


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: grid and block in x, y, z; dynamic shared memory in bytes."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint32),
    )


_ENTRIES = (
    "cuCtxGetCurrent",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuTensorMapReplaceAddress",
)


class Entries:
    """The functions of libcuda that a call makes directly. Shared by threads.

    Args:
        driver: whose functions they are.
        bind: how calls are held ready; None takes the fastest way there is.

    Attributes:
        functions: their addresses: of `cuLaunchKernelEx`, then those of `_ENTRIES`.

    """

    def __init__(self, driver: Driver, bind: Bind | None = None) -> None:
        self.launch = driver.entry("cuLaunchKernelEx")
        self.bind = bind or fastest_bind()
        of_one = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        of_two = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        found = [driver.entry(name) for name in _ENTRIES]
        self.functions = (self.launch, *found)
        self.get_current = of_one(found[0])
        self.stream_context, self.is_capturing, self.replace_address = map(of_two, found[1:])


class Launch:
    """A plan packed for one device, to be started on any of its streams, any number of times.

    One thread at a time may use a `Launch`.

    Attributes:
        function: the kernel.
        plan: the launch as it was packed; a patched argument is not in it.
        context: the handle of the device's context.
        addresses: the first three arguments of `cuLaunchKernelEx`.

    """

    def __init__(
        self, driver: Driver, entries: Entries, encode: Encode, function: Function, plan: Plan
    ) -> None:
        self.function, self.plan = function, plan
        self._driver, self._encode = driver, encode
        self._get_current = entries.get_current
        self._slots = layout(function.variant.params)
        self._block = _AlignedBlock(block_bytes(self._slots))
        self._pointers = self._block.pointers(self._slots)
        self._attributes = _attributes(plan)
        self._config = _config(plan, self._attributes)
        config, parameters = ctypes.addressof(self._config), ctypes.addressof(self._pointers)
        self.addresses = (config, function.handle, parameters)
        self._start = entries.bind(entries.launch, *self.addresses)
        self.context = driver.context(function.device.ordinal)
        self._seen_context = ctypes.c_void_p()
        self._seen_address = ctypes.addressof(self._seen_context)
        self._stream, self._is_default = 0, True
        for index, argument in enumerate(plan.arguments):
            self.patch(index, argument)

    def patch(self, index: int, argument: PlanArgument) -> None:
        """Replace the value of parameter `index`."""
        self._block.write(self._slots[index].offset, _packed(argument, self._encode))

    def address_of(self, index: int) -> int:
        """Where parameter `index` lies in this process; as long as the launch does."""
        return self._block.address + self._slots[index].offset

    def __call__(self, stream: int = 0) -> None:
        """Start the kernel on a stream; does not wait for it.

        Whose stream it is, is asked only where it is another one than last time.

        Raises:
            ProblemError: the stream belongs to another device.
            ForkError: the process was forked since the bundle was loaded.
            DriverError: the driver refuses the launch.

        """
        if self._driver.is_forked:
            raise fork_error(self._driver.process)
        if stream != self._stream:
            self._take(stream)
        code = self._start_on_default() if self._is_default else self._start()
        if code:
            raise self._driver.error("cuLaunchKernelEx", code)

    def _take(self, stream: int) -> None:
        check_stream(self._driver, stream, self.function.device.ordinal)
        self._config.stream = self._stream = stream
        self._is_default = stream in DEFAULT_STREAMS

    def _start_on_default(self) -> int:
        """A default stream means the thread's current context, so that must be the device's."""
        code = self._get_current(self._seen_address)
        if code:
            raise self._driver.error("cuCtxGetCurrent", code)
        if self._seen_context.value == self.context:
            return self._start()
        with self._driver.current(self.function.device.ordinal):
            return self._start()


def check_stream(driver: Driver, stream: int, ordinal: int) -> None:
    """Refuse a stream that belongs to another device than `ordinal`."""
    owner = driver.stream_device(stream)
    if owner not in (None, ordinal):
        raise ProblemError(
            f"belongs to device {owner}, but the arguments are on device {ordinal}",
            where="`stream`",
        )


def check_layout(variant: Variant, slots: tuple[Slot, ...]) -> None:
    """Check a cubin's parameter offsets against the C ABI's for the variant's signature.

    Raises:
        BundleError: they differ, so arguments would land in the wrong places.

    """
    expected = variant.slots
    if slots != expected:
        raise BundleError(
            f"the cubin's parameters are {_offsets(slots)}; the signature's are "
            f"{_offsets(expected)}",
            where=variant.id,
            hint="build the bundle again",
        )


def _offsets(slots: tuple[Slot, ...]) -> str:
    return ", ".join(f"{slot.size} bytes at {slot.offset}" for slot in slots) or "none"


class _AlignedBlock:
    """The parameters in host memory, aligned for tensor maps.

    They lie as the C ABI lays out a block that starts aligned; the driver copies each one to where
    the cubin has it.
    """

    def __init__(self, size: int) -> None:
        self._memory = ctypes.create_string_buffer(size + TENSOR_MAP_ALIGN)
        start = ctypes.addressof(self._memory)
        self.address = -(-start // TENSOR_MAP_ALIGN) * TENSOR_MAP_ALIGN

    def pointers(self, slots: tuple[Slot, ...]) -> ctypes.Array[ctypes.c_void_p]:
        """`kernelParams`: the address of each parameter."""
        addresses = [self.address + slot.offset for slot in slots]
        return (ctypes.c_void_p * len(addresses))(*addresses)

    def write(self, offset: int, data: bytes) -> None:
        ctypes.memmove(self.address + offset, data, len(data))


def _packed(argument: PlanArgument, encode: Encode) -> bytes:
    match argument:
        case Pointer(address=address):
            return address.to_bytes(8, "little")
        case Scalar():
            return argument.raw
        case TensorMap():
            return encode(argument)


def _config(plan: Plan, attributes: ctypes.Array[LaunchAttribute]) -> LaunchConfig:
    return LaunchConfig(
        grid=tuple(plan.grid),
        block=tuple(plan.block),
        shared_bytes=plan.shared_bytes,
        attributes=ctypes.addressof(attributes),
        attribute_count=len(attributes),
    )


def _attributes(plan: Plan) -> ctypes.Array[LaunchAttribute]:
    wanted = []
    if plan.cluster != Dim3(1):
        wanted.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=tuple(plan.cluster)))
    if plan.programmatic:
        wanted.append(LaunchAttribute(id=_PROGRAMMATIC_STREAM, value=(1,)))
    return (LaunchAttribute * len(wanted))(*wanted)
