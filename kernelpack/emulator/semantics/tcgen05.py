"""tcgen05.mma on the tensor pipe (PTX ISA 9.7.16.10).

Operands are read, and results written, when the product takes effect.
"""

from functools import lru_cache

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Misuse
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.memory import Bytes
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import (
    instruction_descriptor,
    instruction_rules,
    tcgen05_mma,
)
from kernelpack.emulator.models import tensor_memory as model
from kernelpack.emulator.models.instruction_descriptor import Kind, MmaShape
from kernelpack.emulator.models.instruction_rules import Use
from kernelpack.emulator.models.zero_columns import zero_columns
from kernelpack.emulator.ptx.syntax import Address, Vector
from kernelpack.emulator.semantics import (
    access,
    matrix_operands,
    tensor_allocation,
    tensor_memory,
    tensor_pipe,
)
from kernelpack.emulator.semantics.table import Form, Handler, control
from kernelpack.emulator.semantics.tensor_memory import Area
from kernelpack.emulator.semantics.tensor_pipe import Pipe

_KINDS = tuple(f"kind::{kind}" for kind in Kind)
_SCALE_SIZES = ("block16", "block32", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X")
_COLLECTORS = tuple(
    f"collector::{operand}::{use}"
    for operand in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)
_FLAGS = (*tensor_allocation.GROUPS, *_KINDS, *_SCALE_SIZES, *_COLLECTORS, "ws", "block_scale")


def _operands(form: Form) -> tuple[str, ...]:
    given = form.instruction.operands
    a = "@tensor" if isinstance(given[1], Address) else "b64"
    words = ["@tensor", a, "b64", "b32"]
    if form.has("block_scale"):
        words += ["@tensor", "@tensor"]
    if len(given) > len(words) and isinstance(given[len(words)], Vector):
        words.append("{b32}")
    words.append("pred")
    if len(given) > len(words):
        words.append("b64" if form.has("ws") else "#")
    return tuple(words)


@control("tcgen05.mma", "9.7.16.10.9", operands=_operands, flags=_FLAGS, yields=True)
def multiply(form: Form) -> Handler:
    """Start D = A B + D on the tensor pipe."""
    words = _operands(form)
    kind = Kind(form.one_of(_KINDS).removeprefix("kind::"))
    use = Use(
        cta_group=2 if form.has("cta_group::2") else 1,
        ws=form.has("ws"),
        a_in_tensor_memory=words[1] == "@tensor",
        blocks=_blocks(form),
    )
    scale_d = form.constant(len(words) - 1) if words[-1] == "#" else 0

    def call(warp: Warp, _split: Split, mask: Mask, *values: Lanes) -> None:
        tensor_allocation.check_group(form, warp)
        lanes = access.each_lane(mask)
        if len(lanes) != 1:
            text = f"tcgen05.mma issued by {len(lanes)} lanes"
            warp.cta.machine.misuse(rules.SINGLE_THREAD, text)
        for lane in lanes:
            numbers = [int(value[lane]) for value in values if not isinstance(value, list)]
            masks = [int(x[lane]) for value in values if isinstance(value, list) for x in value]
            if any(masks):
                raise form.unsupported("a mask of output lanes")
            through = tensor_pipe.pipe(form, warp, lane)
            _Multiply(form, through, (kind, use, scale_d), numbers).start()

    return call


def _blocks(form: Form) -> int:
    """Scale factors a row; 0 without block scaling."""
    if not form.has("block_scale"):
        return 0
    by_name = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}
    size = form.one_of(_SCALE_SIZES)
    if size in by_name:
        return by_name[size]
    return 1 if form.has("kind::mxf8f6f4") else 2


@lru_cache(maxsize=1024)
def _decode(kind: Kind, raw: int, use: Use) -> tuple[MmaShape, tuple[Misuse, ...]]:
    shape = instruction_descriptor.decode(kind, raw)
    return shape, instruction_rules.lint(shape, use)


@lru_cache(maxsize=256)
def _accumulator(m: int, n: int, cta_group: int, ws: bool, address: int) -> Area:
    return tensor_memory.area(
        model.accumulator(m=m, n=n, cta_group=cta_group, ws=ws, address=address)
    )


@lru_cache(maxsize=256)
def _a_operand(m: int, cta_group: int, ws: bool, words: int, address: int) -> Area:
    return tensor_memory.area(
        model.a_operand(m=m, cta_group=cta_group, ws=ws, words=words, address=address)
    )


@lru_cache(maxsize=256)
def _scale_factors(rows: int, address: int, halves: bool) -> Area:
    return tensor_memory.area(model.scales(rows=rows, address=address, halves=halves))


class _Multiply:
    """One tcgen05.mma from its issue to its effect."""

    def __init__(
        self, form: Form, pipe: Pipe, fixed: tuple[Kind, Use, int], numbers: list[int]
    ) -> None:
        kind, self.use, self.scale_d = fixed
        self.form, self.pipe, self.warp, self.agent = form, pipe, pipe.warp, pipe.agent
        self.d, self.a, self.b, raw, *rest = numbers
        self.scale_addresses = tuple(rest[:2]) if self.use.blocks else ()
        enable, *zeros = rest[2:] if self.use.blocks else rest
        self.accumulate = bool(enable)
        self.shape, found = _decode(kind, raw, self.use)
        matrix_operands.tell(self.warp, found)
        if self.use.blocks:
            matrix_operands.tell(self.warp, self._lint_scales())
        self.zeros = zero_columns(zeros[0], self.shape.m, self.shape.n) if zeros else None
        self.ctas = tensor_allocation.members(form, pipe.warp.cta)

    def _lint_scales(self) -> tuple[Misuse, ...]:
        of_a, of_b = (model.split(address)[1] for address in self.scale_addresses)
        return instruction_rules.lint_scales(self.shape, self.use, (of_a, of_b))

    def start(self) -> None:
        """Issue it on the pipe, after copies and products of its shape into its accumulator."""
        product = ("tcgen05.mma", self.d, self.shape.m, self.shape.n)
        self.pipe.issue(
            self.form.instruction.text, self.effect, product, (tensor_pipe.COPY, product)
        )

    def effect(self) -> None:
        """Read B of every CTA, then multiply in each."""
        b = np.concatenate([self._shared(cta, self.b, "B") for cta in self.ctas])
        results = [(cta, self._words(cta, b)) for cta in self.ctas]
        for cta, words in results:
            tensor_memory.write(cta, self._area_of_d(), words, self.agent, "D of tcgen05.mma")

    def _area_of_d(self) -> Area:
        i = self.shape
        return _accumulator(i.m, i.n, self.use.cta_group, self.use.ws, self.d)

    def _words(self, cta: Cta, b: Bytes) -> Lanes:
        d = None
        if self.accumulate:
            d = tensor_memory.read(cta, self._area_of_d(), self.agent, "D of tcgen05.mma")
        in_tensor = self.use.a_in_tensor_memory
        groups = self._tensor_a(cta) if in_tensor else [self._shared(cta, self.a, "A")]
        inputs = tcgen05_mma.Inputs(
            a=groups[0],
            b=b,
            d=d,
            a_scales=self._scales(cta, 0),
            b_scales=self._scales(cta, 1),
            scale_d=self.scale_d,
            zeros=self.zeros,
        )
        multiply = cta.machine.multiply
        return tcgen05_mma.multiply_groups(self.shape, groups, inputs, multiply)

    def _shared(self, cta: Cta, raw: int, name: str) -> Bytes:
        """Dense bytes of an operand in shared memory, this CTA's rows of it."""
        i = self.shape
        rows, kind, major = (i.m, i.a, i.a_mn_major) if name == "A" else (i.n, i.b, i.b_mn_major)
        descriptor, found = matrix_operands.tcgen05(raw)
        matrix_operands.tell(self.warp, found)
        matrix_operands.tell(
            self.warp, instruction_rules.lint_operand(i, descriptor, mn_major=major)
        )
        where = matrix_operands.region(
            "tcgen05",
            raw,
            mn_major=major,
            rows=rows // self.use.cta_group,
            k=i.k,
            bits=kind.bits,
            padded=i.kind.is_padded,
        )
        what = f"operand {name} of tcgen05.mma"
        return matrix_operands.read(cta, where, self.agent, self.warp, what)

    def _tensor_a(self, cta: Cta) -> list[Bytes]:
        """Dense bytes of A in tensor memory, of each group of lanes (see `a_operand`)."""
        i = self.shape
        bits = 8 if i.kind.is_padded else i.a.bits
        where = _a_operand(i.m, self.use.cta_group, self.use.ws, i.k * bits // 32, self.a)
        words = tensor_memory.read(cta, where, self.agent, "A of tcgen05.mma")
        if (words != words[:1]).any():
            cta.machine.misuse(
                rules.OPERANDS_DIFFER,
                "the groups of lanes hold different A: each multiplies its own",
            )
        raw = np.ascontiguousarray(words).view(np.uint8)
        return [_packed(one, i.a.bits) if bits != i.a.bits else one for one in raw]

    def _scales(self, cta: Cta, which: int) -> Lanes | None:
        if not self.use.blocks:
            return None
        i = self.shape
        rows = i.m // self.use.cta_group if which == 0 else i.n
        halves = which == 1 and instruction_rules.halves_scales(i, self.use)
        where = _scale_factors(rows, self.scale_addresses[which], halves)
        name = f"SF{'AB'[which]} of tcgen05.mma"
        words = tensor_memory.read(cta, where, self.agent, name)
        byte = i.sfa_id if which == 0 else i.sfb_id
        codes = model.scale_codes(words[0], byte, self.use.blocks)
        others = [model.scale_codes(copy, byte, self.use.blocks) for copy in words[1:]]
        if any((codes != other).any() for other in others):
            cta.machine.misuse(
                rules.SCALES_DIFFER,
                f"{name} differs between the quadrants",
            )
        return codes


def _packed(raw: Bytes, bits: int) -> Bytes:
    """Rows of 8-bit containers → dense rows of `bits`-bit elements."""
    flags = np.unpackbits(raw[..., None], axis=-1, bitorder="little")[..., :bits]
    return np.packbits(flags.reshape(len(raw), -1), axis=1, bitorder="little")
