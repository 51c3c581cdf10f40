"""The bill of materials: everything that the index states, in words that tools know."""

import json

import pytest

from kernelpack.bundle.entry import Provenance
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.sbom import sbom
from kernelpack.spec.artifact import digest

MADE = Provenance(
    kernelpack="0.1.0",
    toolchain="cuda-13.4",
    front_end="nvrtc",
    release="13.4",
    toolchain_digest=digest("toolchain"),
    versions={"nvidia-cuda-nvcc": "13.4.92", "ptxas": "13.4"},
    sources={"manifests/a.yaml": digest("manifest")},
    licences={"manifests/a.yaml": "Apache-2.0"},
)


@pytest.fixture
def records(sound):
    return open_bundle(sound).records()


@pytest.fixture
def told(records):
    return json.loads(sbom("ab" * 32, MADE, records))


def test_format(told):
    """CycloneDX 1.6, numbered by the root."""
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert told["serialNumber"].startswith("urn:uuid:")


def test_the_same_every_time(records):
    """One bundle has one document: no time, no host."""
    assert sbom("ab" * 32, MADE, records) == sbom("ab" * 32, MADE, records)


def test_licence(told):
    """The kernels' licence, and that of a source, as the manifests state it."""
    whole, (source, *_) = told["metadata"]["component"], told["components"]
    assert whole["licenses"] == source["licenses"] == [{"expression": "Apache-2.0"}]


def test_tools(told):
    """kernelpack, the toolchain, and each of its parts."""
    tools = {tool["name"]: tool["version"] for tool in told["metadata"]["tools"]["components"]}
    expected = {"kernelpack": "0.1.0", "cuda-13.4": "13.4", **MADE.versions}
    assert expected == tools


def test_a_part_from_a_wheel(told):
    """A part that came as a wheel has its address and licence."""
    parts = told["metadata"]["tools"]["components"]
    (nvcc,) = (part for part in parts if part["name"] == "nvidia-cuda-nvcc")
    assert nvcc["purl"] == "pkg:pypi/nvidia-cuda-nvcc@13.4.92"
    assert nvcc["licenses"] == [{"expression": "LicenseRef-NVIDIA-Proprietary"}]


def test_components(told, records):
    """Every source and every cubin, by digest."""
    found = {part["name"]: part["hashes"][0]["content"] for part in told["components"]}
    cubins = {record.id: record.image_digest for record in records}
    assert found == {**MADE.sources, **cubins}
