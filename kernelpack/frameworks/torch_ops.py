"""kernelpack's ops as torch's own: `torch.ops.kernelpack.lora_shrink_qkv` and the others.

    from kernelpack.frameworks import torch_ops

    torch_ops.register(kernelpack.load("kernels.kpk"))
    c = torch.ops.kernelpack.lora_shrink_qkv(a, b, a_offsets, expert_ids)

The plain overload makes its outputs by torch's allocator; `.out` fills those it is given and
returns nothing, as `torch.compile` wants it. Both run on torch's current stream, and have shapes
for fake tensors, so that a graph is traced through them. On tensors of the CPU the emulator
computes. No op has a gradient.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from kernelpack.errors import KernelpackError
from kernelpack.formats.dtype import DType
from kernelpack.frameworks.fill import FACES, Face, fill
from kernelpack.load.library import Library
from kernelpack.ops import EmulatedLibrary
from kernelpack.ops.arrays import Type
from kernelpack.ops.prepared import Started
from kernelpack.ops.repeat import repeated
from kernelpack.ops.tensors import NAMES, raw_stream

Torch = Any
Tensor = Any
Argument = Any
"""The package, a tensor, any argument of an op: torch is not there where types are checked."""


def schemas(face: Face, name: str) -> dict[str, str]:
    """An op's overloads in torch's language, by name: the plain one and `.out`, or one in place."""
    kinds = dict.fromkeys(face.numbers, "float")
    inputs = ", ".join(f"{kinds.get(word, 'Tensor')} {word}" for word in face.inputs)
    given = [f"Tensor? {word}=None" for word in face.groups]
    given += [f"float? {word}=None" for word in face.settings]
    given += [f"bool {word}=False" for word in face.flags]
    given += [f"int? {word}=None" for word in face.counts]
    outputs = [_output(face, word, x) for x, word in zip("abcdef", face.outputs, strict=False)]
    choices = [f"SymInt? {word}=None" for word in face.sizes]
    choices += [f"ScalarType? {word}=None" for word in face.types]
    fills = f"({_arguments(inputs, [*given, *outputs])}) -> ()"
    if face.traced is None:
        return {name: f"{name}{fills}"}
    plain = _arguments(inputs, [*given, *choices])
    tensors = ", ".join("Tensor" for _ in face.outputs)
    return {name: f"{name}({plain}) -> ({tensors})", f"{name}.out": f"{name}.out{fills}"}


def _arguments(inputs: str, keywords: list[str]) -> str:
    """Those by position, then those by keyword alone, if there are any."""
    return ", ".join([inputs, "*", *keywords]) if keywords else inputs


def _output(face: Face, word: str, alias: str) -> str:
    return f"Tensor({alias}!)? {word}=None" if word in face.spare else f"Tensor({alias}!) {word}"


def made(torch: Torch, face: Face, *inputs: Tensor, **given: Argument) -> tuple[Tensor, ...]:
    """New outputs of the plain overload, on the inputs' device."""
    assert face.traced is not None, "an op in place has no plain overload"
    return tuple(
        inputs[0].new_empty(shape, dtype=_type(torch, kind))
        for shape, kind in face.traced(*inputs, **given)
    )


def _type(torch: Torch, kind: Type) -> Type:
    """Torch's element type."""
    return getattr(torch, NAMES[kind]) if isinstance(kind, DType) else kind


class TorchOps:
    """The ops in one torch: defined once, with a library that may be given anew."""

    def __init__(self, torch: Torch) -> None:
        self.library: Library | EmulatedLibrary | None = None
        self._torch, self._stream = torch, raw_stream(torch)
        self._definitions = torch.library.Library("kernelpack", "FRAGMENT")
        for name, face in FACES.items():
            self._define(name, face)

    def _define(self, name: str, face: Face) -> None:
        """Of its overloads the one that fills is the last, in place or `.out`."""
        *plain, (filling, schema) = schemas(face, name).items()
        for overload, its_schema in plain:  # first: torch tries overloads in this order, slowly
            makes = {"CPU": partial(self._make, face), "CUDA": partial(self._make_and_launch, face)}
            self._add(overload, its_schema, makes, fake=partial(self._shapes, face))
        fills = {"CPU": partial(self._fill, face), "CUDA": partial(self._launch, face)}
        self._add(filling, schema, fills, fake=_nothing)

    def _add(
        self,
        name: str,
        schema: str,
        runs: Mapping[str, Callable[..., object]],
        fake: Callable[..., object],
    ) -> None:
        self._definitions.define(schema)
        for backend, run in runs.items():
            self._definitions.impl(name, run, backend)
        register_fake = self._torch.library.register_fake
        register_fake(f"kernelpack::{name}", fake, lib=self._definitions)

    def _make(self, face: Face, *inputs: Tensor, **given: Argument) -> object:
        """The plain overload on the CPU."""
        outputs = made(self._torch, face, *inputs, **given)
        words = dict(zip(face.outputs, outputs, strict=True))
        self._fill(face, *inputs, **_passed(face, given), **words)
        return _one_or_all(outputs)

    def _make_and_launch(self, face: Face, *inputs: Tensor, **given: Argument) -> object:
        """The plain overload on a GPU, on torch's current stream of it."""
        self._add_where(inputs, given)

        def whole() -> Started:
            outputs = made(self._torch, face, *inputs, **given)
            words = dict(zip(face.outputs, outputs, strict=True))
            where = {word: given[word] for word in _WHERE}
            started = _start(face, inputs, {**_passed(face, given), **words, **where})
            return replace(started, outputs=outputs, made=outputs)

        return repeated((face.call, "new"), whole, inputs, given)

    def _launch(self, face: Face, *inputs: Tensor, **given: Tensor) -> None:
        """The overload `.out` on a GPU, on torch's current stream of it."""
        self._add_where(inputs, given)
        repeated((face.call, "out"), lambda: _start(face, inputs, given), inputs, given)

    def _add_where(self, inputs: Sequence[Tensor], given: dict[str, Argument]) -> None:
        given["stream"] = self._stream(inputs[0].get_device())
        given["library"] = self.library

    def _shapes(self, face: Face, *inputs: Tensor, **given: Argument) -> object:
        """The plain overload of tensors without memory."""
        return _one_or_all(made(self._torch, face, *inputs, **given))

    def _fill(self, face: Face, *inputs: Tensor, **given: Tensor) -> None:
        """The overload `.out` on the CPU."""
        arrays = dict(zip(face.inputs, inputs, strict=True)) | given
        plain = {word: self._plain(tensor) for word, tensor in arrays.items()}
        fill(face, plain, stream=_none, library=self.library)

    def _plain(self, tensor: Tensor) -> Tensor:
        """A tensor without its gradient, and bytes for fp8, which torch's DLPack may not know.

        Numbers, and None, stay what they are.
        """
        if tensor is None or isinstance(tensor, int | float):
            return tensor
        is_fp8 = tensor.dtype == self._torch.float8_e4m3fn
        return (tensor.view(self._torch.uint8) if is_fp8 else tensor).detach()


def register(library: Library | EmulatedLibrary | None = None) -> None:
    """Define the ops under `torch.ops.kernelpack`; a later call gives them another library.

    Args:
        library: the kernels to choose from; None: those that are installed, found at first use.

    Raises:
        KernelpackError: torch is not installed.

    """
    torch = _torch()
    if torch not in _DEFINED:
        _DEFINED[torch] = TorchOps(torch)
    _DEFINED[torch].library = library


_DEFINED: dict[Torch, TorchOps] = {}
"""The ops of each torch of this process (there is one): torch defines an op once."""


def _torch() -> Torch:
    try:
        return import_module("torch")
    except ImportError as error:
        raise KernelpackError("torch is not installed", hint="pip install torch") from error


_WHERE = ("stream", "library")


def _start(face: Face, inputs: Sequence[Tensor], given: Mapping[str, Argument]) -> Started:
    """The whole way of a call, of tensors without their gradients."""
    assert face.start is not None, "an op has it"
    instead: dict[int, Tensor] = {}

    def plain(value: Argument) -> Argument:
        if not getattr(value, "requires_grad", False):
            return value
        found = value.detach()
        instead[id(found)] = value
        return found

    words = {word: plain(value) for word, value in given.items()}
    started = face.start(*map(plain, inputs), **words)
    return replace(started, instead=instead)


def _passed(face: Face, given: Mapping[str, Argument]) -> dict[str, Argument]:
    """The plain overload's arguments that the filling one takes."""
    words = (*face.groups, *face.settings, *face.flags, *face.counts)
    return {word: given[word] for word in words if word in given}


def _none() -> None:
    """The stream of the CPU."""


def _one_or_all(outputs: tuple[Tensor, ...]) -> object:
    return outputs[0] if len(outputs) == 1 else outputs


def _nothing(*_inputs: Tensor, **_given: Tensor) -> None:
    """`.out` of tensors without memory."""
