"""`kernelpack diff`."""

import json

import pytest

from tests.cli.conftest import BF16, FP32
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant


@pytest.fixture
def newer(tmp_path):
    """The bundle without fp32, with fp16, and with other machine code for bf16."""
    changed = entry(variant(), image=b"longer machine code of another kind, and more of it" * 3)
    return write_bundle(tmp_path / "newer.kpk", [changed, entry(variant(out="fp16"))])


def test_lines(kernelpack, bundle, newer):
    """What came, what went, what changed; the sum is talk."""
    said = kernelpack("diff", bundle, newer)
    assert said.out.splitlines() == [
        f"- {FP32}",
        f"+ {FP32.replace('fp32', 'fp16')}",
        f"~ {BF16}: image_bytes {len(f'cubin of {BF16}')} to 153",
    ]
    assert said.err.startswith("1 came, 1 went, 1 changed, 0 the same; ")


def test_same(kernelpack, bundle):
    """A bundle does not differ from itself."""
    said = kernelpack("diff", bundle, bundle)
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith("0 came, 0 went, 0 changed, 2 the same; ")


def test_another_launch(kernelpack, bundle, tmp_path):
    """The same machine code with another launch is a change."""
    wider = write_bundle(tmp_path / "y.kpk", [variant(cluster="4"), variant(out="fp32")])
    assert kernelpack("diff", bundle, wider).out == f"~ {BF16}: another launch, cost or guard\n"


def test_json(kernelpack, bundle, newer):
    """`--json` gives old and new numbers."""
    told = json.loads(kernelpack("diff", bundle, newer, "--json").out)
    assert (told["removed"], told["same"]) == ([FP32], 0)
    assert told["changed"][BF16]["image_bytes"][1] == 153
