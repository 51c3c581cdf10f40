"""docs/blackwell_review.md names places that exist, and every kernel for Blackwell."""

import re
from pathlib import Path

import pytest

from kernelpack.manifest.schema import load
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "blackwell_review.md").read_text()
PLACES = sorted(set(re.findall(r"`([\w/]+\.(?:cuh|inl\.cuh|cu\.j2|yaml|py)): (\w+)`", PAGE)))
KERNELS = sorted(
    path.stem
    for path in (ROOT / "manifests").glob("*.yaml")
    if "sm_100a" in {arch.name for arch in load(path).targets}
)
ROOMS = {"kp": ROOT / "templates" / "include", "manifests": ROOT, "kernelpack": ROOT}
"""Where a path begins, by its first word; other templates' are under `templates`."""


def text_of(path: str) -> str:
    """The text of a file as the page calls it."""
    return (ROOMS.get(Path(path).parts[0], ROOT / "templates") / path).read_text()


def defines(path: str, text: str, name: str) -> bool:
    """Whether a file gives something this name."""
    if path.endswith(".yaml"):
        return re.search(rf"^ *{name}:", text, re.MULTILINE) is not None
    if path.endswith(".py"):
        return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None
    struct, constant = rf"struct (?:alignas\(\d+\) )?{name}\b", rf"constexpr \w+ {name} ="
    function = rf"(?:__device__|constexpr)[^;{{}}()]* {name}\("
    return re.search(f"{struct}|{constant}|{function}", text) is not None


@pytest.mark.parametrize(("path", "name"), PLACES)
def test_a_place_exists(path, name):
    """What the page points to is there, under that name."""
    assert defines(path, text_of(path), name)


def test_a_call_defines_nothing():
    """A name that is only called in a file is not a place of it."""
    path = "nvfp4_grouped_gemm/sm_100.cu.j2"
    assert not defines(path, text_of(path), "mbarrier_wait")


def test_places_are_found():
    """Most rows name one."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert len(PLACES) >= len(rows) / 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_was_read(kernel):
    """A kernel for Blackwell has a place on the page: in its manifest, or its own template."""
    paths = [Path(path) for path, _ in PLACES]
    assert kernel in {path.stem for path in paths} | {path.parts[0] for path in paths}
