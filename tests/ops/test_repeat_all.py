"""Every op's call again: the same launch, by few Python calls, and nothing that grows.

A GPU is pretended; the cases are those that frameworks' doors are tested with on a real one.
"""

import gc
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.frameworks.fill import FACES
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops import OPS
from kernelpack.ops.arrays import dtype_of
from tests.fakes.pretended import ARCH, Pretended
from tests.gpu.asked import CASES, Asked
from tests.kept import ROOT
from tests.ops.repeating import calls_of

MOST_CALLS = 60


@cache
def variants(stem):
    listed = expand(load(ROOT / f"manifests/{stem}.yaml"))
    return [variant for variant in listed if str(variant.arch) == ARCH]


@pytest.fixture(params=CASES)
def call(request, tmp_path):
    """A call of an op on the pretended GPU, and that GPU."""
    asked = Asked(request.param)
    stem = asked.definition.stem
    gpu = Pretended(tmp_path, variants(stem))

    def tensor(value):
        if not isinstance(value, np.ndarray):
            return value
        dense = np.ascontiguousarray(value)
        dtype = next(kind for kind in DType if kind.numpy == value.dtype)
        return replace(gpu.upload(dense, dtype), device=0)

    face = FACES[stem]
    inputs = [tensor(value) for value in asked.inputs(face)]
    words = {**asked.keywords(face), **asked.written}
    given = {word: tensor(value) for word, value in words.items()}
    if face.traced is not None:
        made = face.traced(*inputs, **given)
        outputs = [gpu.array(tuple(shape), dtype_of(kind)) for shape, kind in made]
        given |= dict(zip(face.outputs, (replace(x, device=0) for x in outputs), strict=True))
    return partial(OPS[stem].fill, *inputs, **given, library=gpu.library), gpu


def test_again(call):
    """The driver is given the same again; what Python does for it is bounded."""
    call, gpu = call
    call()
    assert len(calls_of(call)) <= MOST_CALLS
    first, second = gpu.cuda.launches
    assert first == second


def test_nothing_grows(call):
    """A hundred calls leave no more objects than one."""
    call, gpu = call
    for _ in range(3):
        call()
    counts = []
    for _ in range(2):
        for _ in range(100):
            call()
        gpu.cuda.launches.clear()
        gpu.cuda.calls.clear()
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[1] <= counts[0] + 5
