"""`kernelpack verify` on a kernel of three lines."""

import json
from functools import partial
from importlib import import_module

import pytest

from kernelpack.build.pipeline import build
from kernelpack.kernels.registry import KERNELS
from kernelpack.verify.verify import verify
from kernelpack.workers.pool import run_here
from tests.verify import small


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Runs in this process, where the small kernel's meaning is known."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    module = import_module("kernelpack.cli.verify")
    monkeypatch.setattr(module, "verify", partial(verify, run=run_here))


@pytest.fixture
def right(tmp_path):
    return small.bundle(tmp_path / "x.kpk")


@pytest.fixture
def wrong(tmp_path):
    texts = {32: small.ptx(entry="twice_32"), 64: small.ptx("neg.f32 %f1, %f1;", entry="twice_64")}
    return small.bundle(tmp_path / "y.kpk", texts)


def test_right(kernelpack, right):
    """A right bundle: exit 0, the sum on stdout, the record beside the bundle."""
    said = kernelpack("verify", right, "--schedule", "eager")
    assert said.code == 0
    assert "2 of 2 variants right in all of theirs" in said.out
    assert f"wrote {right.with_name('x.verified.json')}" in said.err


def test_wrong(kernelpack, wrong):
    """A wrong number: exit 1, and the first wrong element is shown."""
    said = kernelpack("verify", wrong, "--schedule", "eager")
    assert said.code == 1
    assert "y: 5 of 5 wrong, first [0] = " in said.out


def test_several(kernelpack, right, wrong):
    """One wrong bundle of several is enough."""
    assert kernelpack("verify", right, wrong, "--schedule", "eager").code == 1


def test_keep(kernelpack, wrong):
    """`-k` chooses the variants; the wrong one is not looked at."""
    said = kernelpack("verify", wrong, "-k", "tile=32", "--schedule", "eager")
    assert said.code == 0
    assert "1 of 1 variant " in said.out


def test_json(kernelpack, right):
    """`--json` prints the record of each bundle."""
    said = kernelpack("verify", right, "--schedule", "eager", "--json")
    (record,) = json.loads(said.out)
    assert (record["right"], len(record["entries"])) == (True, 2)


@pytest.mark.parametrize("words", [["--strict"], ["--level", "strict"]], ids=" ".join)
def test_strict(kernelpack, right, words):
    """What hardware tolerates is asked for by either word; the record says so."""
    said = kernelpack("verify", right, "--schedule", "eager", *words, "--json")
    (record,) = json.loads(said.out)
    levels = {run["level"] for entry in record["entries"].values() for run in entry["runs"]}
    assert levels == {"strict"}


def test_html(kernelpack, right, tmp_path):
    """`--html` writes a page beside the record."""
    page = tmp_path / "r.html"
    assert kernelpack("verify", right, "--schedule", "eager", "--html", page).code == 0
    assert page.read_text().startswith("<!doctype html>")


def test_default_plan(kernelpack, right):
    """Without a schedule the plan covers pairs: more than the telling cases."""
    said = kernelpack("verify", right)
    assert said.code == 0
    assert int(said.out.splitlines()[-1].split(" runs")[0]) > 8


def test_unknown_schedule(kernelpack, right):
    """A schedule that does not exist is refused before anything runs; the known are named."""
    said = kernelpack("verify", right, "--schedule", "lasy")
    assert said.code == 1
    assert "schedules: eager, fair, lazy, starving:RANK:WARP" in said.err


def test_no_twin(kernelpack, right):
    """A bundle without its PTX names the file that is missing."""
    right.with_suffix(".ptx.kpk").unlink()
    said = kernelpack("verify", right)
    assert said.code == 1
    assert "x.ptx.kpk: the PTX of this bundle is missing" in said.err


@pytest.fixture
def buildable(project, monkeypatch):
    """A project whose manifest `verify` builds with compilers that compile nothing."""
    steps = partial(build, steps=project.steps())
    monkeypatch.setattr(import_module("kernelpack.cli.built"), "build", steps)
    return project


def test_manifest_that_does_not_build(kernelpack, buildable):
    """A manifest is built first; if that fails, the mistake is reported and nothing is verified."""
    buildable.template.write_text("{{ NOPE }}")
    said = kernelpack("verify", buildable.manifest)
    assert (said.code, said.out) == (1, "")
    assert "NOPE" in said.err
    assert "does not build, so nothing was verified" in said.err


def test_templates_of_ones_own(kernelpack, buildable, tmp_path):
    """A manifest may be built from templates elsewhere, as with `build`."""
    folder = buildable.template.parents[1]
    folder.rename(tmp_path / "mine")
    said = kernelpack("verify", buildable.manifest, "--templates", tmp_path / "mine")
    assert "nothing to verify: it holds fill" in said.err


def test_manifest_of_unknown_meaning(kernelpack, buildable):
    """A kernel without an oracle cannot be verified: nothing is proven, and the output says so."""
    said = kernelpack("verify", buildable.manifest)
    assert said.code == 1
    assert "nothing to verify" in said.err


def test_html_in_no_folder(kernelpack, right, tmp_path):
    """A page that could not be written is refused before anything runs."""
    said = kernelpack("verify", right, "--html", tmp_path / "no" / "page.html")
    assert (said.code, said.err) == (1, f"error: {tmp_path / 'no'}: there is no such folder\n")


def test_html_over_the_bundle(kernelpack, right):
    """A page does not replace the bundle it is of."""
    before = right.read_bytes()
    said = kernelpack("verify", right, "--html", right)
    assert (said.code, right.read_bytes()) == (1, before)
    assert f"{right}: is not written over" in said.err
