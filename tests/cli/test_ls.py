"""`kernelpack ls`."""

import json

import pytest

from tests.cli.conftest import BF16, FP32
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import variant


def test_table(kernelpack, bundle):
    """A line an entry, under a header; their number is talk."""
    said = kernelpack("ls", bundle)
    header, *lines = said.out.splitlines()
    assert header.split("  ")[-4:] == ["static shared", "dynamic shared", "cubin", "sha256"]
    assert [line.split()[:2] for line in lines] == [[BF16, "128"], [FP32, "128"]]
    assert said.err == "2 entries\n"


@pytest.mark.parametrize(("shared_bytes", "expected"), [("100_000", 100_000), ("4 * n", "4 * n")])
def test_shared_memory(kernelpack, tmp_path, shared_bytes, expected):
    """Dynamic shared memory is what a launch asks for: a number, or an expression of sizes."""
    path = write_bundle(tmp_path / "y.kpk", [variant(shared_bytes=shared_bytes)])
    (told,) = json.loads(kernelpack("ls", path, "--json").out)
    assert (0, expected) == (told["static_shared_bytes"], told["dynamic_shared_bytes"])
    assert f"  {expected}  " in kernelpack("ls", path).out


def test_keep(kernelpack, bundle):
    """`-k` chooses among the entries."""
    _, *lines = kernelpack("ls", bundle, "-k", "fp32").out.splitlines()
    assert [line.split()[0] for line in lines] == [FP32]


def test_json(kernelpack, bundle):
    """`--json` has every number of a record."""
    told = json.loads(kernelpack("ls", bundle, "--json").out)
    assert [record["id"] for record in told] == [BF16, FP32]
    assert told[0]["symbol"] == "lora_shrink_qkv_bf16_bf16_64"


def test_keep_nothing(kernelpack, bundle):
    """A choice of nothing is an error, and says what was meant."""
    said = kernelpack("ls", bundle, "-k", "out=fp23")
    assert (said.code, said.out) == (1, "")
    assert "no id holds `out=fp23`" in said.err
    assert "did you mean `out=fp32`?" in said.err
