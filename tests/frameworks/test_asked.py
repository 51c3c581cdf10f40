"""What tests on a GPU ask frameworks' ops with is the case that their oracle is of."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.frameworks.fill import FACES
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops.op import Op
from tests.fakes.bundles import write_bundle
from tests.gpu.asked import CASES, HOPPER, Asked
from tests.kept import ROOT

LARGER = {"scale_blocks"}  # which an op makes for groups of any rows


class Recorder(ops.EmulatedLibrary):
    """A library that keeps what it was asked to run, and runs nothing."""

    def run(self, kernel, sizes, arrays, _abis):
        self.asked = kernel, {name: size for name, size in sizes.items() if name not in LARGER}
        return dict(arrays)


def test_every_op():
    """Each op of one kernel is asked for."""
    of_one = {name for name, op in ops.OPS.items() if isinstance(op, Op)}
    assert of_one == {name.partition(" ")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_the_problem_is_the_cases(name, tmp_path):
    """Operands of a case, through the function that frameworks call, are its problem again."""
    asked = Asked(name)
    manifest = load(ROOT / "manifests" / f"{asked.definition.stem}.yaml")
    library = Recorder(write_bundle(tmp_path / "x.kpk", expand(manifest, [HOPPER])))
    face = FACES[asked.definition.stem]
    heads = np.zeros((1, 16), np.float32)  # of the case of sparse MLA
    made = () if asked.written else ("lse", "max_logits")
    spare = {word: heads.copy() for word in face.spare if word in made}
    given = {**asked.keywords(face), **asked.written, **spare}
    face.call(*asked.inputs(face), **given, library=library)
    sizes = {size: value for size, value in asked.case.sizes.items() if size not in LARGER}
    assert library.asked == (asked.definition.stem, sizes)


@pytest.mark.parametrize("name", [name for name in CASES if Asked(name).written])
def test_a_cache_that_nothing_was_written_to(name):
    """It is not what the oracle has."""
    asked = Asked(name)
    assert asked.ratio(asked.written) > 1
