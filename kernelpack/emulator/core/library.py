"""The core as Python calls it: a program from its text, and a run of it."""

import ctypes
import time
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

_WHY_BYTES = 512
_LOOK = ctypes.CFUNCTYPE(c_int, c_int64, POINTER(c_int64))
_NUMBERS = (
    *("threads", "dynamic_shared_bytes", "explicit_cluster", "registers", "shared_bytes"),
    *("local_bytes", "workspace", "multiprocessors", "multiprocessor_shared_bytes", "target"),
    *("tempo", "held_rank", "held_warp", "resident", "step_limit", "is_watched", "is_logged"),
    *("exact", "only"),
)


class Numbers(Structure):
    """The numbers of a launch and of its schedule (api.cpp)."""

    _fields_ = [
        ("grid", c_int64 * 3), ("block", c_int64 * 3), ("cluster", c_int64 * 3),
        *((name, c_int64) for name in _NUMBERS),
    ]  # fmt: skip


class _Memories(Structure):
    _fields_ = [
        ("bytes", c_void_p), ("state", c_void_p), ("size", c_uint64), ("base", c_uint64),
        ("parameters", c_char_p), ("parameter_bytes", c_uint64),
    ]  # fmt: skip


class _Result(Structure):
    _fields_ = [("steps", c_int64), ("operations", c_int64), ("log_words", c_int64),
                ("log", POINTER(c_int64))]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Memories:
    """Global memory with its states, which a run changes in place, and the parameter block."""

    values: NDArray[np.uint8]
    state: NDArray[np.uint8]
    base: int
    parameters: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run: `doubt` is why the core gave it up, empty where it ran to its end.

    `log` is the events, where they are kept; else, of a doubt, where every warp stood.
    """

    doubt: str
    steps: int
    operations: int
    seconds: float
    log: NDArray[np.int64]


class Program:
    """A program that the core has read. `unsupported`: the first form that it does not run."""

    def __init__(self, core: ctypes.CDLL, handle: int) -> None:
        self.core, self.handle = core, handle
        self.unsupported: str = core.kernelpack_unsupported(handle).decode()
        finalize(self, core.kernelpack_forget, handle)

    def run(
        self,
        numbers: Numbers,
        memories: Memories,
        rng: NDArray[np.uint32],
        look: Callable[..., int] | None = None,
    ) -> Ran:
        """Run a launch; on a doubt memory is as it was before."""
        given = _Memories(
            memories.values.ctypes.data, memories.state.ctypes.data, memories.values.size,
            memories.base, memories.parameters, len(memories.parameters),
        )  # fmt: skip
        result, why = _Result(), ctypes.create_string_buffer(_WHY_BYTES)
        shown = _LOOK(look) if look else _LOOK()
        begin = time.perf_counter()
        failed = self.core.kernelpack_run(
            self.handle, byref(numbers), byref(given), rng.ctypes.data_as(POINTER(c_uint32)),
            shown, byref(result), why, _WHY_BYTES,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        log = np.empty(0, np.int64)
        if result.log_words:
            log = np.ctypeslib.as_array(result.log, (result.log_words,)).copy()
        return Ran(
            doubt=why.value.decode() if failed else "",
            steps=result.steps,
            operations=result.operations,
            seconds=seconds,
            log=log,
        )


Multiply = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
_PRODUCT = ctypes.CFUNCTYPE(c_int, *[POINTER(ctypes.c_double)] * 3, *[c_int] * 3)


class Core:
    """The library, loaded. `multiply` gives A B^T where the order of additions matters."""

    def __init__(self, path: Path, multiply: Multiply) -> None:
        self.core = ctypes.CDLL(str(path))
        self.core.kernelpack_program.restype = c_void_p
        self.core.kernelpack_program.argtypes = [c_char_p, c_char_p, c_uint64]
        self.core.kernelpack_forget.argtypes = [c_void_p]
        self.core.kernelpack_unsupported.argtypes = [c_void_p]
        self.core.kernelpack_unsupported.restype = c_char_p
        self.core.kernelpack_run.argtypes = [
            c_void_p, POINTER(Numbers), POINTER(_Memories), POINTER(c_uint32), _LOOK,
            POINTER(_Result), c_char_p, c_uint64,
        ]  # fmt: skip
        self.asked = _PRODUCT(_asker(multiply))  # the core keeps its address
        self.core.kernelpack_ask_product(self.asked)

    def program(self, text: str) -> Program | str:
        """A program from the text of `encode`; or why the core does not read it."""
        why = ctypes.create_string_buffer(_WHY_BYTES)
        handle = self.core.kernelpack_program(text.encode(), why, _WHY_BYTES)
        return Program(self.core, handle) if handle else why.value.decode()


def _asker(multiply: Multiply) -> Callable[..., int]:
    """A product by rows that lie in the core's memory; 1 where there is none, and the core doubts.

    Nothing may be raised through the core: what is wrong here, the Python engine meets again.
    """

    def ask(a: Any, b: Any, out: Any, m: int, n: int, k: int) -> int:  # noqa: ANN401
        try:
            rows, columns = np.ctypeslib.as_array(a, (m, k)), np.ctypeslib.as_array(b, (n, k))
            with np.errstate(all="ignore"):
                np.ctypeslib.as_array(out, (m, n))[:] = multiply(rows, columns)
        except BaseException:  # noqa: BLE001
            return 1
        return 0

    return ask
