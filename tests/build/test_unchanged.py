"""The key of a whole build changes with all that it reads, and with nothing else."""

from dataclasses import replace

import pytest

from kernelpack.build.finish import Files
from kernelpack.build.unchanged import inputs_key, recall, remember
from kernelpack.cache.store import Store
from kernelpack.spec.arch import Arch
from tests.fakes import compilers
from tests.fakes.project import make_project


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


def key(project, **changes):
    return inputs_key(project.options(**changes), compilers.toolchain(project.log), "")


@pytest.mark.parametrize("path", ["manifest", "template"])
def test_sources_take_part(project, path):
    """An edit of a manifest or a template is another build."""
    before = key(project)
    getattr(project, path).write_text(getattr(project, path).read_text() + "\n")
    assert key(project) != before


def test_new_files_take_part(project):
    """A new header may hide nothing, but might be reached."""
    before = key(project)
    project.header("new").write_text("")
    assert key(project) != before


@pytest.mark.parametrize("change", [{"keep": "fill"}, {"targets": (Arch("sm_90a"),)}], ids=str)
def test_choices_take_part(project, change):
    """What is asked for is part of the key."""
    assert key(project, **change) != key(project)


@pytest.mark.parametrize("change", [{"jobs": 7}, {"dry_run": True}], ids=str)
def test_how_takes_no_part(project, change):
    """How a build is done is not."""
    assert key(project, **change) == key(project)


@pytest.mark.parametrize("change", [{"digest": "5" * 64}, {"ptxas_digest": "5" * 64}], ids=str)
def test_toolchain_takes_part(project, change):
    """Other compilers are another build."""
    toolchain = compilers.toolchain(project.log)
    other = inputs_key(project.options(), replace(toolchain, **change), "")
    assert other != key(project)


def test_unknown_build(tmp_path):
    """Inputs never seen give nothing."""
    assert recall(Store(tmp_path), "0" * 64) is None


def test_files_that_are_gone(tmp_path):
    """A build whose files left the cache gives nothing."""
    remember(Store(tmp_path), "0" * 64, ["fill"], "1" * 64)
    assert recall(Store(tmp_path), "0" * 64) is None


def test_known_build(project):
    """After a build its variants and files are known."""
    project.build()
    known = recall(Store(project.root / "cache"), key(project))
    assert len(known.variants) == 3
    assert known.files == Files(
        bundle=project.output.read_bytes(),
        ptx=project.output.with_suffix(".ptx.kpk").read_bytes(),
    )
