"""A build replaces an earlier bundle and nothing else."""

import os
import stat

import pytest

from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.errors import BundleError, ManifestError
from tests.fakes.project import MANIFEST, make_project


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


def test_a_manifest_is_not_overwritten(project):
    """The file that is being built is not an output."""
    with pytest.raises(BundleError, match="is not a bundle; it would be overwritten"):
        project.build(output=project.manifest)
    assert project.manifest.read_text() == MANIFEST


def test_a_stranger_in_the_twins_place_stays(project):
    """The PTX twin replaces no other file either."""
    project.output.parent.mkdir()
    twin_of(project.output).write_text("mine")
    with pytest.raises(BundleError, match="is not a bundle"):
        project.build()
    assert twin_of(project.output).read_text() == "mine"


def test_what_is_no_file_is_refused(project, tmp_path):
    """A pipe, as a device would be, is refused before anything is compiled."""
    pipe = tmp_path / "pipe.kpk"
    os.mkfifo(pipe)
    with pytest.raises(BundleError, match="is not a file"):
        project.build(output=pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert project.compiled() == []


def test_a_twins_name_is_refused(project, tmp_path):
    """`-o a.ptx.kpk` would be the twin of `a.kpk`."""
    with pytest.raises(BundleError, match="PTX, which is written beside it"):
        project.build(output=tmp_path / "a.ptx.kpk")


def test_another_suffix_is_refused(project, tmp_path):
    """A name that is not a bundle's gets no twin beside it."""
    with pytest.raises(BundleError, match=r"does not end in `\.kpk` as a bundle"):
        project.build(output=tmp_path / "x.txt")
    assert not list(tmp_path.glob("x.*"))


def test_a_link_stays_a_link(project, tmp_path):
    """What a link names is replaced, the link is not."""
    project.build()
    link = tmp_path / "link.kpk"
    link.symlink_to(project.output)
    project.manifest.write_text(MANIFEST.replace("cost: n", "cost: n + 1"))
    project.build(output=link)
    assert link.is_symlink()
    assert open_bundle(link).variants()[0].cost.text == "n + 1"


def test_a_files_mode_is_kept(project):
    """A bundle that others may not read stays so."""
    project.build()
    project.output.chmod(0o600)
    project.manifest.write_text(MANIFEST.replace("cost: n", "cost: n + 1"))
    project.build()
    assert stat.S_IMODE(project.output.stat().st_mode) == 0o600


def test_two_manifests_of_one_name(project, tmp_path):
    """A bundle's provenance knows a manifest by its name, so a name comes once."""
    other = tmp_path / "other" / project.manifest.name
    other.parent.mkdir()
    other.write_text(MANIFEST.replace("kernel: fill", "kernel: flood"))
    with pytest.raises(ManifestError, match="has the name of"):
        project.build(manifests=(project.manifest, other))


def test_an_edit_behind_a_linked_folder_is_seen(project, tmp_path):
    """Headers behind a link are inputs like the others."""
    real = project.header("all").parent
    real.rename(tmp_path / "headers")
    real.symlink_to(tmp_path / "headers")
    project.build()
    project.compiled()
    with project.header("all").open("a") as header:
        header.write("// edited\n")
    project.build()
    assert project.compiled() != []
