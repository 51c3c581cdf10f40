"""A first call of LoRA shrink on a pretended GPU, to be repeated; and what a call enters."""

import sys
from dataclasses import replace

from kernelpack.ops import lora_shrink_qkv as op
from tests.ops.bench import Bench

NAMES = ("a", "b", "a_offsets", "expert_ids", "c")


class Placed(Bench):
    """Arrays whose device is known, and a first call that is remembered."""

    def __init__(self, folder):
        super().__init__(folder)
        for name in NAMES:
            setattr(self, name, replace(getattr(self, name), device=0))
        self()

    def __call__(self, **changes):
        """A call with some arguments in place of others."""
        arrays = {name: getattr(self, name) for name in NAMES[:4]}
        return op(**{**arrays, "out": self.c, "library": self.library, **changes})

    @property
    def known(self):
        return self.library.repeats.known

    def other(self, name):
        """An array like one, elsewhere."""
        like = getattr(self, name)
        return replace(like, pointer=self.array(like.shape, like.dtype).pointer)


def calls_of(call):
    """The Python functions of kernelpack that a call enters."""
    entered = []

    def see(frame, event, _):
        if event == "call" and "/kernelpack/" in frame.f_code.co_filename:
            entered.append(frame.f_code.co_qualname)

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered
