"""Kernels ready to launch: a bundle's index to choose from, the driver to run on.

A `Library` is shared by threads. A second use costs no lock and no I/O.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.reader import Bundle
from kernelpack.errors import BundleError, CaptureError, SelectionError
from kernelpack.load.choices import REMEMBERED, Choices, Items, Kinds, key
from kernelpack.runtime import streams
from kernelpack.runtime.bound import extension
from kernelpack.runtime.driver import Device, Driver
from kernelpack.runtime.launch import Entries, Launch, check_layout, check_stream
from kernelpack.runtime.library import Function, Functions, Image
from kernelpack.runtime.memory import Memory, clear, read
from kernelpack.runtime.moving import Moving, Pointing
from kernelpack.runtime.occupancy import Occupancy
from kernelpack.runtime.streams import Timer
from kernelpack.runtime.tensormap import Encode, encoder
from kernelpack.spec.launch import Plan, check_somewhere, resolve
from kernelpack.spec.select import check_asked
from kernelpack.spec.tuned import Overlay
from kernelpack.spec.variant import Variant

__all__ = [
    "Device",
    "Function",
    "Launch",
    "Library",
    "Memory",
    "Moving",
    "Pointing",
    "Timer",
    "extension",
]

_NAMED = "kernelpack.ops.named"
"""Where calls by name are made: a row below this one, and looked up when one is (ADR 0037)."""


class Repeats(local):
    """Remembered calls, for each thread by itself: launches, ready to move."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}


class Library:
    """An open bundle, or several as one, beside a driver. Made by `load`.

    Attributes:
        bundle: what is open.
        driver: of the GPUs.
        tuned: times that choose in place of the manifest's costs.
        repeats: what ops remember of calls (`ops.repeat`).

    """

    def __init__(
        self, bundle: Bundle | Joined, driver: Driver, tuned: Overlay | None = None
    ) -> None:
        self.bundle, self.driver, self.tuned = bundle, driver, tuned
        self.repeats = Repeats()
        self._choices = Choices(bundle, driver, tuned)
        self._functions = Functions(driver)
        self._entries = Entries(driver)
        self._occupancy = Occupancy(driver)
        self._encoders: dict[int, Encode] = {}
        self._is_closed = False
        self._planned = lru_cache(maxsize=REMEMBERED)(self._resolve)

    def devices(self) -> tuple[Device, ...]:
        """Every GPU that this process sees."""
        return tuple(self.device(ordinal) for ordinal in range(self.driver.device_count()))

    def device(self, ordinal: int) -> Device:
        """The facts of a GPU."""
        return self.driver.device(ordinal)

    def select(
        self, kernel: str, sizes: Mapping[str, float], device: int, abis: range | None = None
    ) -> Variant:
        """The variant that serves a problem best.

        Args:
            kernel: the kernel's stem.
            sizes: the problem, name → integer, without the device's sizes; numbers choose nothing.
            device: the ordinal of the device it shall run on.
            abis: the kernel-ABI numbers that the caller can call; None: any.

        Raises:
            ProblemError: a size is not an integer, below 0, or none of the kernel's; or `kernel`
                is not a name, or `abis` not a range.
            SelectionError: none serves; names the device, the driver, each candidate and why not.
            BundleError: the kernel's ABI is not one of `abis`.

        """
        check_asked(kernel, abis, self.bundle.where)
        return self._choices.select(kernel, sizes, device, abis)

    def known(
        self, kernel: str, given: Mapping[str, float], abis: range | None = None
    ) -> dict[str, float]:
        """The part of an op's problem that the kernel knows; an older bundle may know less.

        Errors as of `select`.
        """
        check_asked(kernel, abis, self.bundle.where)
        names = self._choices.names(kernel, abis)
        return {name: value for name, value in given.items() if name in names}

    def function(self, variant: Variant, device: int, *, stream: int | None = None) -> Function:
        """The variant's kernel, ready on a device; loaded and checked on first use.

        Raises:
            CaptureError: first use while `stream` is being captured.
            SelectionError: its machine code holds no kernel for the device.
            BundleError: its bytes are not what the index says.

        """
        return self._functions.find(variant.id, device) or self._load(variant, device, stream)

    def pack(
        self,
        variant: Variant,
        sizes: Mapping[str, float],
        addresses: Mapping[str, int],
        device: int,
        *,
        stream: int | None = None,
    ) -> Launch:
        """A launch of a variant, packed; call it with a stream, any number of times.

        The variant is checked against the problem as when it was chosen.

        Args:
            variant: what `select` gave.
            sizes: the problem, name → integer, without the device's sizes; and the numbers of the
                call, name → float, those left out being their defaults.
            addresses: the device address of every argument, bytes.
            device: the ordinal of the device.
            stream: the stream of the first launch, where it may be in a capture.

        Raises:
            SelectionError: the variant does not serve the problem.
            ProblemError: a size is below 0, an argument lies nowhere or is not aligned, or the
                launch exceeds a limit.

        """
        function = self.function(variant, device, stream=stream)
        plan = self._planned(variant.id, *key(sizes), *key(addresses), device)
        return Launch(self.driver, self._entries, self._encoder(device), function, plan)

    def moving(self, launch: Launch, pointing: Mapping[int, Pointing]) -> Moving:
        """A launch of this library for arrays that lie elsewhere at each start.

        Args:
            launch: as `pack` made it; nobody else may use it from now on.
            pointing: of each parameter that points into an array, by its index.

        """
        return Moving(launch, self._entries, pointing)

    def _encoder(self, device: int) -> Encode:
        """The encoder of a device; two threads may both make one, either serves."""
        return self._encoders.get(device) or self._encoders.setdefault(
            device, encoder(self.driver, device)
        )

    def sizes(self, problem: Mapping[str, float], device: int) -> dict[str, float]:
        """A problem's sizes with those of the device, which expressions may name too."""
        return self._choices.sizes(problem, device)

    def call(self, kernel: str, /, **given: Any) -> Any:  # noqa: ANN401 - arrays of any framework
        """Launch any kernel by the names of its manifest.

        Args:
            kernel: its stem.
            given: by the manifest's names. Arrays: inputs, and outputs where new ones are not
                wanted; `out` is the output of a kernel that has one. Sizes that no side and no
                type of an array says, and numbers. `stream`: a handle, or a stream of any
                framework.

        Returns the outputs at once, in the manifest's order, one alone by itself; their values
        follow on the stream. Those that are not given are made, and so is an argument called
        `workspace`, which is not returned. numpy arrays are computed on the emulator.

        Raises:
            ProblemError: a name or a value is not what the manifest says; says what is.
            SelectionError: the library holds no kernel for this problem and device.
            CaptureError: first use of a kernel, or a new output, while a stream is captured.

        """
        return import_module(_NAMED).call(self, kernel, given)

    def prepare(self, kernel: str, /, **given: Any) -> Any:  # noqa: ANN401 - `ops` is a row below
        """Choose, resolve and pack a launch without starting it; arguments as of `call`.

        Returns a `kernelpack.ops.prepared.Prepared`: it starts the launch on a stream, any number
        of times, and takes other arrays and numbers by `rebind`.
        """
        return import_module(_NAMED).prepare(self, kernel, given)

    def variants(self, kernel: str) -> tuple[Variant, ...]:
        """The variants of a kernel; errors as of `select`."""
        check_asked(kernel, None, self.bundle.where)
        return self._choices.of_abi(kernel, None)

    def running(
        self, variants: Iterable[Variant], device: int
    ) -> tuple[tuple[Variant, ...], dict[str, int]]:
        """Those of some variants of a kernel that run on a device, and the device's sizes.

        Raises:
            SelectionError: none does.

        """
        known, listed = self.device(device), tuple(variants)
        kept = tuple(v for v in listed if v.arch.runs_on(known.capability))
        if not kept:
            self._choices.best(listed, {}, device)
        return kept, {"sm_count": known.sm_count}

    def preload(self, kernel: str | None = None, *, device: int) -> int:
        """Load every kernel that runs on a device, or those of one stem; returns how many.

        After it no call loads anything, so calls may be captured into graphs.

        Raises:
            SelectionError: there is none.

        """
        capability = self.device(device).capability
        wanted = [v for v in self._choices.variants(kernel) if v.arch.runs_on(capability)]
        if not wanted:
            built = ", ".join(sorted({str(v.arch) for v in self._choices.variants(None)}))
            what = f"the bundle holds no kernel{f' `{kernel}`' if kernel else ''} for this device"
            where = f"{self.bundle.where} on {self.device(device)}, {self.driver}"
            raise SelectionError(what, where=where, hint=f"it is built for: {built}")
        for variant in wanted:
            self.function(variant, device)
        return len(wanted)

    def memory(self, size_bytes: int, device: int) -> Memory:
        """Device memory that is freed with its last reference."""
        return Memory(self.driver, size_bytes, device)

    def pointer_device(self, address: int) -> int | None:
        """The device whose memory an address lies in; None for host memory."""
        return self.driver.pointer_device(address)

    def read(self, address: int, array: NDArray[np.generic], device: int, stream: int) -> None:
        """Copy device memory into a host array, once `stream` has done all it was given.

        Raises:
            CaptureError: the stream is being captured.

        """
        if self.driver.is_capturing(stream, device):
            raise CaptureError(
                "nothing can be read back while the stream is captured",
                where="`stream`",
                hint="call without `debug=True` there",
            )
        streams.synchronize(self.driver, stream, device)
        read(self.driver, address, array, device)

    def clear(self, addresses: range, device: int, stream: int) -> None:
        """Let a stream write zeros to device memory; does not wait for it.

        Raises:
            ProblemError: the stream belongs to another device.

        """
        self.check_stream(stream, device)
        clear(self.driver, addresses, device, stream)

    def order(self, stream: int, producer: int, device: int) -> None:
        """Let `stream` wait, on the GPU, for what `producer` has been given so far."""
        streams.wait(self.driver, stream, producer, device)

    def check_allocation(self, stream: int, device: int) -> None:
        """Refuse to make memory for a stream that is being captured.

        Raises:
            CaptureError: it is.

        """
        if self.driver.is_capturing(stream, device):
            raise CaptureError(
                "a stream is being captured, and a capture forbids allocating memory",
                where="`stream`",
                hint="give the outputs (`out=`), and the workspace of an op that has one",
            )

    def check_stream(self, stream: int, device: int) -> None:
        """Refuse a stream that belongs to another device."""
        check_stream(self.driver, stream, device)

    def close(self) -> None:
        """Refuse further loads. Kernels that are loaded stay: launches and graphs may hold them."""
        self._is_closed = True

    def unload(self) -> None:
        """Close, and take every kernel out of the driver; no launch or graph may still use one."""
        self.close()
        self.repeats = Repeats()
        self._functions.unload()

    def _resolve(
        self,
        variant_id: str,
        sizes: Items,
        _size_kinds: Kinds,
        addresses: Items,
        _address_kinds: Kinds,
        ordinal: int,
    ) -> Plan:
        function = self._functions.find(variant_id, ordinal)
        assert function is not None, "a launch is planned after its kernel was loaded"
        fits, variant = partial(self._occupancy.clusters, function), function.variant
        self._choices.best((variant,), dict(sizes), ordinal)
        known, given = self.sizes(dict(sizes), ordinal), dict(addresses)
        plan = resolve(variant, known, given, fits)
        check_somewhere(variant, known, given)
        return plan

    def _load(self, variant: Variant, device: int, stream: int | None) -> Function:
        if self._is_closed:
            raise BundleError("the library is closed", where=self.bundle.where)
        if stream is not None and self.driver.is_capturing(stream, device):
            raise CaptureError(
                f"first use of {variant.id} on {self.device(device)} while the stream is captured",
                where="`stream`",
                hint=f"call `library.preload(device={device})` before the capture begins",
            )
        try:
            return self._functions.make(variant, lambda: self._image(variant), device)
        except SelectionError as error:
            raise self._choices.refusal(error, variant, device) from error

    def _image(self, variant: Variant) -> Image:
        """The machine code, after a check of its digest and parameter offsets."""
        bundle = self.bundle.holding(variant.id)
        check_layout(variant, bundle.slots(variant.id))
        record = bundle.find(variant.id)
        return Image(data=bundle.image(variant.id), shared_bytes=record.shared_bytes)
