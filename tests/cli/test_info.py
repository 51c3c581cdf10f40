"""`kernelpack info`."""

import json

from kernelpack.bundle.reader import open_bundle
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import NUMBERS, variant


def test_facts(kernelpack, bundle):
    """What it holds, for which devices, and what made it."""
    said = kernelpack("info", bundle)
    assert (said.code, said.err) == (0, "")
    facts = dict(line.split("  ", 1) for line in said.out.splitlines())
    told = {name.strip(): value.strip() for name, value in facts.items()}
    assert told["entries"] == "2"
    assert told["root"] == open_bundle(bundle).root
    assert told["kernels"] == "lora_shrink_qkv (ABI 2)"
    assert "sm_90a (runs on 9.0)" in told["targets"]
    assert told["toolchain"] == "cuda-13.0 (nvrtc, CUDA 13.0)"
    assert (told["shard"], told["signed by"]) == ("all of its build", "nobody")


def test_json(kernelpack, bundle):
    """`--json` keeps lists and numbers what they are, has the sources, and no prose."""
    told = json.loads(kernelpack("info", bundle, "--json").out)
    assert (told["entries"], told["kernels"]) == (2, {"lora_shrink_qkv": [2]})
    assert (told["holds"], told["bytes"]) == ("cubins", bundle.stat().st_size)
    assert (told["sources"], told["shard"], told["signed_by"]) == ({}, None, None)
    assert [name for name in told if " " in name] == []


def test_numbers(kernelpack, tmp_path):
    """What a call takes beside its sizes, and what it is where it is left out."""
    path = write_bundle(tmp_path / "x.kpk", [variant(numbers=NUMBERS)])
    told = json.loads(kernelpack("info", path, "--json").out)
    assert told["numbers"] == {"lora_shrink_qkv": {"eps": None, "alpha": 0.1}}
    assert "numbers             lora_shrink_qkv (eps and alpha)" in kernelpack("info", path).out


def test_bill_of_materials(kernelpack, bundle):
    """`--sbom` names every cubin by its digest."""
    told = json.loads(kernelpack("info", bundle, "--sbom").out)
    expected = [record.id for record in open_bundle(bundle).records()]
    assert expected == [part["name"] for part in told["components"]]
