"""What an op of a framework is asked with: a kernel's case as the tensors and numbers of the op.

A case of the kernels of MLA has flat memory with strides, as the kernel sees it. An op takes what
a caller has: tokens by heads, blocks of rows, tables of sequences.
"""

from collections.abc import Callable, Mapping

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.frameworks.fill import Face
from kernelpack.kernels.definition import UNTOUCHED, Arrays, Definition
from kernelpack.kernels.kv_operand.rows import FORMATS, RowFormat
from kernelpack.kernels.registry import find
from kernelpack.spec.arch import Arch

HOPPER = Arch("sm_90a")
"""What tests on a GPU run on."""
CASES = {
    "lora_shrink_qkv": {},
    "nvfp4_grouped_gemm": {},
    "nvfp4_w4a16_grouped_gemm": {},
    "nvfp4_quantize": {},
    "kv_remap_indices": {},
    "kv_cache_append": {},
    "kv_cache_append fp8_640": {"row": "fp8_640"},
    "mla_decode_absorb": {},
    "mla_decode_absorb fp8_640": {"row": "fp8_640", "scales_per_row": "1"},
    "mla_decode_project": {},
    "mla_decode_attention": {},
    "mla_decode_attention whole": {"row": "bf16_576", "partitions": "1", "extra_topk": "64"},
    "mla_decode_attention dense": {"topk": "0", "cached": "150"},
    "mla_decode_combine": {},
    "sparse_mla_prefill": {},
    "sparse_mla_prefill fp8_576": {"row": "fp8_576", "kv_scales": "1"},
}
"""By the op's name, and a word where it has several: sizes that are not the emulator's."""

Operands = dict[str, np.ndarray | float]


class Asked:
    """A case as an op takes it.

    Attributes:
        definition: the kernel.
        case: the problem.
        given: inputs and numbers by the op's words; what the case does not have is left out.
        written: outputs that the caller must give, and nothing has been written to.
        expected: what must come of them, by argument name.

    """

    def __init__(self, name: str) -> None:
        stem = name.partition(" ")[0]
        self.definition: Definition = find(stem)
        self.case = self.definition.case({**self.definition.emulated, **CASES[name]})
        arrays = self.definition.inputs(self.case)
        self.expected = self.definition.expected(self.case, arrays)
        present = {word: array for word, array in arrays.items() if array.size}
        self.given: Operands = _SHAPED.get(stem, _as_they_are)(self.case, present)
        self.written = _WRITTEN[stem](self.case) if stem in _WRITTEN else {}

    def inputs(self, face: Face) -> list[np.ndarray | float]:
        """Those by position."""
        return [self.given[word] for word in face.inputs]

    def keywords(self, face: Face) -> Operands:
        """Those by keyword that the case has."""
        words = (*face.groups, *face.settings, *face.flags)
        return {word: self.given[word] for word in words if word in self.given}

    def ratio(self, outputs: Mapping[str, np.ndarray]) -> float:
        """The worst error of a Hopper kernel's outputs over its bound; at most 1 is right.

        Scales may have more blocks of rows than there are rows; a cache is looked at as bytes.
        """
        seen = {name: _seen(array, self.expected[name]) for name, array in outputs.items()}
        held = [(self.expected[name].on(HOPPER), array) for name, array in seen.items()]
        return max(max(e.ratio(array).max(), e.drift(array)) for e, array in held)


def _seen(array: np.ndarray, expected) -> np.ndarray:
    sides = expected.value.shape
    if array.ndim == len(sides):
        return array[: sides[0]]
    words = {1: np.uint8, 4: np.uint32}[array.nbytes // expected.value.size]
    return array.view(words).reshape(sides)


def _as_they_are(_case, arrays: Arrays) -> Operands:
    return dict(arrays)


def _strided(array: np.ndarray, sides: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    strides = tuple(step * array.itemsize for step in steps)
    return np.lib.stride_tricks.as_strided(array, sides, strides)


def _prefill(case, arrays: Arrays) -> Operands:
    problem = case.problem
    steps = (problem.q_token_stride, problem.q_head_stride, 1)
    known = {
        "q": _strided(arrays["q"], (problem.t, problem.h, problem.q_width), steps),
        "kv": _blocks(arrays["kv"].view(problem.row.dtype.numpy), case),
        "indices": _strided(
            arrays["indices"], (problem.t, problem.topk), (problem.indices_stride, 1)
        ),
        "scale": problem.scale,
        "dead_lse": problem.dead_lse,
    }
    if problem.kv_scales:
        known["kv_scales"] = _blocks(arrays["kv_scales"], case)
    return {**arrays, **known}


def decode_operands(case, arrays: Arrays) -> Operands:
    """Rows of one layer; flags as the op has them."""
    problem, of = case.problem, case.problem.sequences
    steps = (problem.q_token_stride, problem.q_head_stride, 1)
    known: Operands = {
        "q": _strided(arrays["q"], (problem.t, problem.h, problem.row.width), steps),
        "scale": problem.scale,
        "dead_lse": problem.dead_lse,
        "causal": problem.causal,
        "lengths_of_sequences": problem.lengths_of_sequences,
    }
    for word, pool, lists in (
        ("", problem.pool, problem.lists),
        ("extra_", problem.extra_pool, problem.extra_lists),
    ):
        if pool:
            rows = arrays[f"{word}kv"].view(problem.row.dtype.numpy)
            known[f"{word}kv"] = rows.reshape(pool.blocks, pool.page, -1)
        if lists:
            sides = (problem.t, lists.topk)
            known[f"{word}indices"] = _strided(arrays[f"{word}indices"], sides, (lists.stride, 1))
    if of.pages:
        known["table"] = _strided(arrays["table"], (of.count, of.pages), (of.table_stride, 1))
    return {**arrays, **known}


def _parts(case) -> dict[str, np.ndarray]:
    """Outputs of the decode attention, before anything is written."""
    problem = case.problem
    sides = (problem.partitions, problem.t, problem.h)[not problem.is_partial :]
    words = ("partial_out", "partial_lse") if problem.is_partial else ("out", "lse")
    kind = DType.FP32 if problem.is_partial else DType.BF16
    made = (_untouched((*sides, 512), kind), _untouched(sides, DType.FP32))
    return dict(zip(words, made, strict=True))


def _blocks(rows: np.ndarray, case) -> np.ndarray:
    """Rows [rows, elements] as blocks [blocks, page, elements] of the case's layer."""
    width = rows.shape[1]
    steps = (case.problem.block_stride * width, width, 1)
    return _strided(rows, (case.blocks, case.page, width), steps)


def _remap(case, arrays: Arrays) -> Operands:
    """The kernel reads no row, so that any cache of the case's pages will do."""
    problem, lookup = case.problem, case.problem.lookup
    sides = (problem.t, problem.k)
    row = FORMATS["bf16_576"]
    return {
        **arrays,
        "indices": _strided(arrays["indices"], sides, (problem.indices_stride, 1)),
        "kv": np.zeros((lookup.blocks, lookup.page, row.elements), row.dtype.numpy),
        "table": _table(lookup, arrays),
    }


def _append(case, arrays: Arrays) -> Operands:
    problem = case.problem
    known = {"latent": _strided(arrays["latent"], (problem.t, 512), (problem.latent_stride, 1))}
    if problem.row.rope:
        known["rope"] = _strided(arrays["rope"], (problem.t, 64), (problem.rope_stride, 1))
    return {**arrays, **known, **_places(problem, arrays)}


def _places(problem, arrays: Arrays) -> Operands:
    """Slots and positions as integers of their size, tables by sequence."""
    kinds = {
        word: {1: np.int32, 2: np.int64}.get(getattr(problem, size, 0)) for word, size in _SIZES
    }
    found = {word: arrays[word].view(kind) for word, kind in kinds.items() if word in arrays}
    return found | ({"table": _table(problem.lookup, arrays)} if problem.lookup.has_table else {})


_INTEGERS = {1: np.int32, 2: np.int64}
_SIZES = (("slots", "slot_words"), ("positions", "position_words"))


def _absorb(case, arrays: Arrays) -> Operands:
    problem = case.problem
    steps = (problem.q_token_stride, problem.q_head_stride, 1)
    new = (problem.t, 512 + problem.rope)
    return {
        **arrays,
        "q": _strided(arrays["q"], (problem.t, problem.h, 128 + problem.rope), steps),
        "w_uk_scale": arrays["w_uk_scale"].reshape(problem.h, 4, 1),
        "new_kv": _strided(arrays["new_kv"], new, (problem.new_stride, 1)),
        "gamma": arrays["gamma"].view(problem.gamma.numpy),
        "epsilon": problem.epsilon,
        **_places(problem, arrays),
    }


def _project(case, arrays: Arrays) -> Operands:
    problem = case.problem
    steps = (problem.x_token_stride, problem.x_head_stride, 1)
    x = _strided(arrays["x"], (problem.t, problem.h, 512), steps)
    return {**arrays, "x": x, "w_uv_scale": arrays["w_uv_scale"].reshape(problem.h, 1, 4)}


def _table(lookup, arrays: Arrays) -> np.ndarray:
    return _strided(arrays["table"], (lookup.sequences, lookup.pages), (lookup.table_stride, 1))


def _cache(case) -> dict[str, np.ndarray]:
    """A cache of one layer, and its scales, before anything is written."""
    row: RowFormat = case.row
    made = {"kv": _untouched((case.blocks, case.page, row.elements), row.dtype)}
    if case.scales_per_row:
        shape = (case.blocks, case.page, case.scales_per_row)
        made["kv_scales"] = _untouched(shape, DType.FP32)
    return made


def _absorbed(case) -> dict[str, np.ndarray]:
    """Queries, and the cache that new rows go to."""
    problem = case.problem
    out = _untouched((problem.t, problem.h, problem.width), DType.BF16)
    return {"out": out, **_cache(case)}


def _untouched(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    made = np.zeros(shape, dtype.numpy)
    made.view(np.uint8)[...] = UNTOUCHED
    return made


_SHAPED: Mapping[str, Callable[..., Operands]] = {
    "mla_decode_attention": decode_operands,
    "sparse_mla_prefill": _prefill,
    "kv_remap_indices": _remap,
    "kv_cache_append": _append,
    "mla_decode_absorb": _absorb,
    "mla_decode_project": _project,
}
_WRITTEN: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {
    "kv_cache_append": _cache,
    "mla_decode_absorb": _absorbed,
    "mla_decode_attention": _parts,
}
