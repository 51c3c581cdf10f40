"""`check --rebuild`: what a bundle holds is what its sources give."""

from dataclasses import replace

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.writer import write
from kernelpack.check.rebuild import Sources, rebuild, sample
from kernelpack.errors import ToolchainError
from tests.fakes.project import make_project

ONE = "fill[arch=sm_90a,size=1]"


@pytest.fixture
def project(tmp_path):
    """A small project, built by compilers that compile nothing."""
    made = make_project(tmp_path)
    made.build()
    made.compiled()
    return made


def sources(project):
    return Sources(manifests=(project.manifest,), templates=project.root / "templates")


def found(project, percent=100, **steps):
    return rebuild(project.output, sources(project), percent, project.steps(**steps)).findings


def forge(project, **changes):
    """Put an entry of one id into the bundle that differs from what was built."""
    bundle = open_bundle(project.output)
    entries = [bundle.entry(record.id) for record in bundle.records()]
    forged = [replace(e, **changes) if e.variant.id == ONE else e for e in entries]
    write(forged, project.output, bundle.provenance)


def test_the_same_again(project):
    """Every entry is made again, by compilers and not from the cache, and nothing differs."""
    assert found(project) == ()
    assert project.compiled() == ["fill_1", "fill_2", "fill_3"]


@pytest.mark.parametrize(("percent", "count"), [(1, 1), (34, 2), (66.6, 2), (100, 3)])
def test_sample(project, percent, count):
    """A part of the entries, at least one; the same ones each time."""
    bundle = open_bundle(project.output)
    assert len(sample(bundle, percent)) == count
    assert sample(bundle, percent) == sample(bundle, percent)
    rebuilt = rebuild(project.output, sources(project), percent, project.steps())
    assert (count, ()) == (rebuilt.entries, rebuilt.findings)


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"image": b"other machine code"}, "machine code"),
        ({"ptx_digest": "00" * 32}, "PTX"),
        ({"source_digest": "00" * 32}, "source"),
    ],
)
def test_an_entry_that_differs(project, changes, stage):
    """The entry is named, and the first stage whose result differs."""
    forge(project, **changes)
    (finding,) = found(project)
    assert finding.what == f"the {stage} differs from that of a rebuild"
    assert finding.where == f"{project.output}: {ONE}"


def test_a_launch_that_differs(project):
    """A variant that is launched otherwise than its manifest says is found."""
    bundle = open_bundle(project.output)
    variant = bundle.variant(ONE)
    forge(project, variant=replace(variant, guards=()))
    (finding,) = found(project)
    assert finding.what.startswith("the manifests say otherwise")


def test_other_sources(project):
    """Sources that have changed since are named, and nothing is compiled."""
    project.header("all").write_text("// newer\n")
    (finding,) = found(project)
    assert finding.where == str(project.header("all"))
    assert project.compiled() == []


@pytest.mark.parametrize("path", ["templates/include/kp/one.cuh", "manifests/fill.yaml"])
def test_missing_sources(project, path):
    """A source that is not here is named as the bundle knows it."""
    project.header("one").unlink() if "one" in path else project.manifest.unlink()
    rebuilt = rebuild(project.output, sources(project), 100, project.steps())
    (finding,) = rebuilt.findings
    assert (rebuilt.entries, finding.where) == (0, path)
    assert "--manifest" in finding.hint


def test_other_compilers(project):
    """Compilers of other bytes are reported, with the versions of both."""
    other = replace(project.steps().find(), digest="3" * 64)
    (finding,) = found(project, find=lambda *_, **__: other)
    assert finding.what.startswith("was built with other compilers")


def test_no_compilers(project):
    """A toolchain that is not installed is an error as in a build."""

    def find(*_, **__):
        raise ToolchainError("is not installed")

    with pytest.raises(ToolchainError):
        found(project, find=find)


def test_a_compiler_that_refuses(project):
    """What no longer compiles is found, under the name of its entry."""
    compilers = replace(project.steps().compilers, inspect=refuse)
    assert [f.what for f in found(project, 1, compilers=compilers)] == ["refused"]


def refuse(*_):
    raise ToolchainError("refused")
