"""kernelpack's ops as functions of TVM's FFI, for C++, Rust and whatever else speaks it.

    from kernelpack.frameworks import tvm_ops

    tvm_ops.register(kernelpack.load("kernels.kpk"))
    tvm_ffi.get_global_func("kernelpack.lora_shrink_qkv")(a, b, a_offsets, expert_ids, out)

A function takes the op's inputs in order, then those that may be None, numbers last, then the
outputs, which it fills and which the caller made. It runs on the FFI's current stream of the
output's device; where all lies on the CPU, the emulator computes.
"""

from importlib import import_module
from types import ModuleType

from kernelpack.errors import KernelpackError, ProblemError, install_extra
from kernelpack.frameworks.fill import FACES, Face, an_output, fill
from kernelpack.load.library import Library
from kernelpack.ops import EmulatedLibrary
from kernelpack.ops.arrays import Array


def register(library: Library | EmulatedLibrary | None = None) -> None:
    """Make the functions known as `kernelpack.<op>`; a later call gives them another library.

    Args:
        library: the kernels to choose from; None: those that are installed, found at first use.

    Raises:
        KernelpackError: apache-tvm-ffi is not installed.

    """
    tvm_ffi = _tvm_ffi()
    for name, face in FACES.items():
        function = _function(tvm_ffi, name, face, library)
        tvm_ffi.register_global_func(f"kernelpack.{name}", function, override=True)


def _function(
    tvm_ffi: ModuleType, name: str, face: Face, library: Library | EmulatedLibrary | None
) -> object:
    numbers = (*face.settings, *face.flags, *face.counts)
    names = (*face.inputs, *face.groups, *numbers, *face.outputs)

    def call(*arrays: Array) -> None:
        if len(arrays) != len(names):
            what = f"takes {len(names)} arguments, not {len(arrays)}"
            raise ProblemError(what, where=name, hint=f"they are {', '.join(names)}")
        given = dict(zip(names, arrays, strict=True))
        device = an_output(face, given).device
        fill(face, given, stream=lambda: tvm_ffi.get_raw_stream(device), library=library)

    return call


def _tvm_ffi() -> ModuleType:
    try:
        return import_module("tvm_ffi")
    except ImportError as error:
        what = "TVM's FFI is not installed"
        raise KernelpackError(what, hint=install_extra("tvm-ffi")) from error
