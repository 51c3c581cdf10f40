"""Functions that hardware approximates (PTX ISA 9.7.3.13 to 9.7.3.22)."""

import numpy as np

from kernelpack.emulator.semantics.floating import Function, elementwise
from kernelpack.emulator.semantics.rounding import MODES
from kernelpack.emulator.semantics.table import FLOATS, Form, Handler, lanes

_APPROXIMATE: dict[str, tuple[str, Function]] = {
    "rcp": ("9.7.3.13", lambda a: a.dtype.type(1) / a),
    "sqrt": ("9.7.3.15", np.sqrt),
    "rsqrt": ("9.7.3.16", lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype)),
    "sin": ("9.7.3.18", np.sin),
    "cos": ("9.7.3.19", np.cos),
    "lg2": ("9.7.3.20", lambda a: np.log2(a.astype(np.float64)).astype(a.dtype)),
    "ex2": ("9.7.3.21", lambda a: np.exp2(a.astype(np.float64)).astype(a.dtype)),
    "tanh": ("9.7.3.22", lambda a: np.tanh(a.astype(np.float64)).astype(a.dtype)),
}
"""Functions the hardware approximates; here the nearest value, within its stated error."""


def _add_approximate(name: str, section: str, function: Function) -> None:
    @lanes(
        name, section, operands=("=T", "T"),
        types=(*FLOATS, "f16x2", "bf16x2"), flags=(*MODES, "ftz", "approx"),
    )  # fmt: skip
    def build(form: Form) -> Handler:
        mode = form.one_of(MODES, "rn")
        if mode != "rn":
            raise form.unsupported(f"rounding `.{mode}` of `{name}`")
        return elementwise(form, function)


for _name, (_section, _function) in _APPROXIMATE.items():
    _add_approximate(_name, _section, _function)
