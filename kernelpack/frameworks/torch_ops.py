"""kernelpack's ops as torch's own: `torch.ops.kernelpack.lora_shrink_qkv` and the others.

    from kernelpack.frameworks import torch_ops

    torch_ops.register(kernelpack.load("kernels.kpk"))
    c = torch.ops.kernelpack.lora_shrink_qkv(a, b, a_offsets, expert_ids)

The plain overload makes its outputs by torch's allocator; `.out` fills those it is given and
returns nothing, as `torch.compile` wants it. Both run on torch's current stream, and have shapes
for fake tensors, so that a graph is traced through them. On tensors of the CPU the emulator
computes. No op has a gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from kernelpack.errors import KernelpackError
from kernelpack.formats.scale_layout import ROWS
from kernelpack.frameworks.fill import FACES, Face, fill
from kernelpack.load.library import Library
from kernelpack.ops import EmulatedLibrary
from kernelpack.ops.arrays import Type
from kernelpack.ops.nvfp4 import ATOM, atoms_along
from kernelpack.ops.sparse_mla_prefill import WIDTH

Torch = Any
Tensor = Any
Argument = Any
"""The package, a tensor, any argument of an op: torch is not there where types are checked."""

Made = Callable[..., tuple[Tensor, ...]]
"""Torch, then the arguments of the plain overload → new outputs on the inputs' device."""

BACKENDS = ("CPU", "CUDA")


def _planes(
    _torch: Torch, a: Tensor, b: Tensor, *_: Tensor, m: int | None = None, out_dtype: Type = None
) -> tuple[Tensor]:
    shape = (3, a.shape[0] if m is None else m, b.shape[1] // 3)
    return (a.new_empty(shape, dtype=out_dtype or a.dtype),)


def _product(
    torch: Torch, a: Tensor, b: Tensor, *_: Tensor, out_dtype: Type = None
) -> tuple[Tensor]:
    shape = (a.shape[0], b.shape[1])
    return (a.new_empty(shape, dtype=out_dtype or torch.bfloat16),)


def _codes_and_scales(
    torch: Torch, x: Tensor, _scales: Tensor, *, expert_ids: Tensor = None, **_groups: Tensor
) -> tuple[Tensor, Tensor]:
    """Scales have the row blocks that are enough for any groups, as of the op."""
    t, k = x.shape
    blocks = -(-t // ROWS) if expert_ids is None else t // ROWS + expert_ids.shape[0]
    codes = x.new_empty((t, k // 2), dtype=torch.uint8)
    return codes, x.new_empty((blocks, atoms_along(k), *ATOM), dtype=torch.uint8)


def _attended(
    torch: Torch, q: Tensor, _kv: Tensor, _indices: Tensor, _scale: float, **_given: Argument
) -> tuple[Tensor, Tensor, Tensor]:
    """Out, lse and the largest scores."""
    t, h, _ = q.shape
    scores = [q.new_empty((t, h), dtype=torch.float32) for _ in range(2)]
    return q.new_empty((t, h, WIDTH), dtype=torch.bfloat16), scores[0], scores[1]


def _encoded(
    torch: Torch, indices: Tensor, _kv: Tensor, _table: Tensor, **_given: Argument
) -> tuple[Tensor]:
    return (indices.new_empty(tuple(indices.shape), dtype=torch.int32),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overloads:
    """What the plain overload takes besides tensors, and how it makes outputs.

    An op without `made` has one overload, the plain one, and writes what it is given.
    """

    choices: str = ""
    made: Made | None = None


OVERLOADS = {
    "kv_cache_append": Overloads(),
    "kv_remap_indices": Overloads(made=_encoded),
    "lora_shrink_qkv": Overloads(
        choices="SymInt? m=None, ScalarType? out_dtype=None", made=_planes
    ),
    "nvfp4_grouped_gemm": Overloads(choices="ScalarType? out_dtype=None", made=_product),
    "nvfp4_w4a16_grouped_gemm": Overloads(choices="ScalarType? out_dtype=None", made=_product),
    "nvfp4_quantize": Overloads(made=_codes_and_scales),
    "sparse_mla_prefill": Overloads(made=_attended),
}
"""By the op's name, as `FACES`."""


def schemas(name: str) -> dict[str, str]:
    """An op's overloads in torch's language, by name: the plain one and `.out`, or one in place."""
    face = FACES[name]
    kinds = dict.fromkeys(face.numbers, "float")
    inputs = ", ".join(f"{kinds.get(word, 'Tensor')} {word}" for word in face.inputs)
    given = [f"Tensor? {word}=None" for word in face.groups]
    given += [f"float? {word}=None" for word in face.settings]
    given += [f"bool {word}=False" for word in face.flags]
    outputs = [_output(face, word, x) for x, word in zip("abc", face.outputs, strict=False)]
    plain = ", ".join(filter(None, ["*", *given, OVERLOADS[name].choices]))
    made = ", ".join("Tensor" for _ in face.outputs)
    fills = f"({inputs}, {', '.join(['*', *given, *outputs])}) -> ()"
    if OVERLOADS[name].made is None:
        return {name: f"{name}{fills}"}
    return {name: f"{name}({inputs}, {plain}) -> ({made})", f"{name}.out": f"{name}.out{fills}"}


def _output(face: Face, word: str, alias: str) -> str:
    return f"Tensor({alias}!)? {word}=None" if word in face.spare else f"Tensor({alias}!) {word}"


class TorchOps:
    """The ops in one torch: defined once, with a library that may be given anew."""

    def __init__(self, torch: Torch) -> None:
        self.library: Library | EmulatedLibrary | None = None
        self._torch = torch
        self._definitions = torch.library.Library("kernelpack", "FRAGMENT")
        for name, overloads in OVERLOADS.items():
            self._define(name, FACES[name], overloads.made)

    def _define(self, name: str, face: Face, made: Made | None) -> None:
        """The overload that fills comes last, in place or `.out`."""
        *plain, (filling, schema) = schemas(name).items()
        self._add(filling, schema, partial(self._fill, face), fake=_nothing)
        if made is not None:
            ((overload, schema),) = plain
            run, fake = partial(self._make, face, made), partial(self._shapes, face, made)
            self._add(overload, schema, run, fake=fake)

    def _add(
        self, name: str, schema: str, run: Callable[..., object], fake: Callable[..., object]
    ) -> None:
        self._definitions.define(schema)
        for backend in BACKENDS:
            self._definitions.impl(name, run, backend)
        register_fake = self._torch.library.register_fake
        register_fake(f"kernelpack::{name}", fake, lib=self._definitions)

    def _make(self, face: Face, made: Made, *inputs: Tensor, **given: Argument) -> object:
        """The plain overload."""
        outputs = made(self._torch, *inputs, **given)
        words = (*face.groups, *face.settings, *face.flags)
        passed = {word: given[word] for word in words if word in given}
        self._fill(face, *inputs, **passed, **dict(zip(face.outputs, outputs, strict=True)))
        return _one_or_all(outputs)

    def _shapes(self, _face: Face, made: Made, *inputs: Tensor, **given: Argument) -> object:
        """The plain overload of tensors without memory."""
        return _one_or_all(made(self._torch, *inputs, **given))

    def _fill(self, face: Face, *inputs: Tensor, **given: Tensor) -> None:
        """The overload `.out`."""
        arrays = dict(zip(face.inputs, inputs, strict=True)) | given
        device = given[face.outputs[0]].device
        fill(
            face,
            {word: self._plain(tensor) for word, tensor in arrays.items()},
            stream=lambda: self._torch.cuda.current_stream(device),
            library=self.library,
        )

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
"""Of each torch of this process, of which there is one, its ops: torch defines an op once."""


def _torch() -> Torch:
    try:
        return import_module("torch")
    except ImportError as error:
        raise KernelpackError("torch is not installed", hint="pip install torch") from error


def _one_or_all(outputs: tuple[Tensor, ...]) -> object:
    return outputs[0] if len(outputs) == 1 else outputs


def _nothing(*_inputs: Tensor, **_given: Tensor) -> None:
    """What `.out` of tensors without memory does."""
