"""One instruction on a warp: the bench on which the tables of the families are run.

A case is an instruction with `%d` for its destination and `%a`, `%b`, … for its operands, their
types and values (a list is one value a lane, the last one repeated), and what must come out.
Floats are compared by their bits.
"""

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelpack.emulator import launch

LANES = 32
NUMPY = {
    **{f"{k}{b}": np.dtype(f"{'ui'[k == 's']}{b // 8}") for k in "us" for b in (8, 16, 32, 64)},
    **{f"b{b}": np.dtype(f"u{b // 8}") for b in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "pred": np.dtype(np.uint8),
}


@dataclass(frozen=True)
class Case:
    """An instruction, the type of its result, what it must be, and its operands."""

    text: str
    result: str
    expected: list[Any]
    operands: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)

    def __str__(self) -> str:
        values = [f"{name}={values[0]!r}" for name, (_, values) in self.operands.items()]
        return f"{self.text} {' '.join(values)}"


def case(text: str, result: str, expected: Any, **operands: tuple[str, Any]) -> Any:
    """A parameter of a test."""
    lists = {name: (kind, _list(values)) for name, (kind, values) in operands.items()}
    return pytest.param(made := Case(text, result, _list(expected), lists), id=str(made)[:80])


def _list(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]


def array(kind: str, values: list[Any]) -> np.ndarray:
    """Values of a PTX type, one a lane."""
    padded = [*values, *[values[-1]] * (LANES - len(values))]
    dtype = NUMPY[kind]
    if dtype.kind in "ui":
        mask = (1 << 8 * dtype.itemsize) - 1
        unsigned = np.dtype(f"u{dtype.itemsize}")
        return np.array([int(v) & mask for v in padded], unsigned).view(dtype)
    if any(isinstance(v, int) and not isinstance(v, bool) and v > 2**15 for v in padded):
        return np.array(padded, np.dtype(f"u{dtype.itemsize}")).view(dtype)
    return np.array(padded, dtype)


def evaluate(one: Case) -> np.ndarray:
    """The result of every lane."""
    out = np.zeros(LANES, NUMPY[one.result])
    inputs = {name: array(kind, values) for name, (kind, values) in one.operands.items()}
    for values in inputs.values():
        values.setflags(write=False)
    launch(program(one), "one", 1, LANES, out, *inputs.values(), level="strict")
    return out


def program(one: Case) -> str:
    """The instruction as a kernel: load the operands, run it, store the result."""
    kinds = {name: kind for name, (kind, _) in one.operands.items()}
    parameters = ", ".join(f".param .u64 p_{name}" for name in ("d", *kinds))
    lines = [_load(name, kind) for name, kind in kinds.items()]
    registers = [_declare(name, kind) for name, kind in {"d": one.result, **kinds}.items()]
    return f"""
.version 9.1
.target sm_100a
.address_size 64
.visible .entry one({parameters})
{{
  .reg .u32 %lane; .reg .u64 %at, %step; .reg .b16 %byte; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  .reg .pred %p<4>;
  {" ".join(registers)}
  mov.u32 %lane, %tid.x;
  {" ".join(lines)}
  {one.text}
  {_store(one.result)}
  ret;
}}"""


def _declare(name: str, kind: str) -> str:
    bits = "pred" if kind == "pred" else f"b{8 * NUMPY[kind].itemsize}"
    return f".reg .{bits} %{name};"


def _address(name: str, kind: str) -> str:
    return f"ld.param.u64 %at, [p_{name}]; mad.wide.u32 %at, %lane, {NUMPY[kind].itemsize}, %at;"


def _load(name: str, kind: str) -> str:
    if kind == "pred":
        return f"{_address(name, kind)} ld.global.u8 %byte, [%at]; setp.ne.b16 %{name}, %byte, 0;"
    return f"{_address(name, kind)} ld.global.b{8 * NUMPY[kind].itemsize} %{name}, [%at];"


def _store(kind: str) -> str:
    if kind == "pred":
        return f"{_address('d', kind)} selp.b16 %byte, 1, 0, %d; st.global.u8 [%at], %byte;"
    return f"{_address('d', kind)} st.global.b{8 * NUMPY[kind].itemsize} [%at], %d;"


def check(one: Case) -> None:
    """Run a case and compare bits."""
    found = evaluate(one)
    expected = array(one.result, one.expected)
    count = len(one.expected)
    unsigned = np.dtype(f"u{expected.itemsize}")
    assert expected[:count].view(unsigned).tolist() == found[:count].view(unsigned).tolist()
