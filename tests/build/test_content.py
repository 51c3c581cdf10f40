"""Objects of the cache that are whole, and not what their keys stand for."""

import pytest

from kernelpack.build.options import State
from kernelpack.bundle.reader import twin_of
from kernelpack.cache.frame import frame
from tests.fakes.project import make_project

OBJECTS = 9  # PTX and machine code of three variants, the bundle, its PTX, what it is of
CONTENTS = (b"", b"{}", b"null", b"\xff\xfe", b"[1, 2]", b"[[], 7]", b'{"cubin": {}}\n')


def objects(project):
    return sorted(
        path for path in (project.root / "cache" / "objects").rglob("*") if path.is_file()
    )


@pytest.fixture
def project(tmp_path):
    """A project that was built, and its cache."""
    made = make_project(tmp_path)
    made.build()
    return made


@pytest.mark.parametrize("content", CONTENTS)
def test_every_object_is_something_else(project, content):
    """Another version's objects, or somebody else's, are made again, and the bundle is the same."""
    good = project.output.read_bytes(), twin_of(project.output).read_bytes()
    for path in objects(project):
        path.write_bytes(frame(path.name, content))
    project.build()
    assert good == (project.output.read_bytes(), twin_of(project.output).read_bytes())


@pytest.mark.parametrize("number", range(OBJECTS))
def test_one_object_is_something_else(project, number):
    """Whichever it is, the build is as it was; a bundle is looked at before it replaces one."""
    known, good = objects(project), project.output.read_bytes()
    assert len(known) == OBJECTS
    known[number].write_bytes(frame(known[number].name, b"[1, 2]"))
    project.build()
    assert project.output.read_bytes() == good


def test_another_bundle_in_its_place(project, tmp_path):
    """A sound bundle of other variants does not belong to this build."""
    other = make_project(tmp_path / "other")
    other.build(keep="size=1")
    foreign, good = other.output.read_bytes(), project.output.read_bytes()
    (held,) = (path for path in objects(project) if good in path.read_bytes())
    held.write_bytes(frame(held.name, foreign))
    project.build()
    assert project.output.read_bytes() == good


def test_a_note_that_is_something_else(project):
    """What was built last is not known then, and nothing else is lost."""
    (note,) = (project.root / "cache" / "notes").iterdir()
    note.write_bytes(frame(note.name, b"[3]"))
    project.template.write_text(project.template.read_text() + "// edited\n")
    assert [outcome.state for outcome in project.build().outcomes] == [State.COMPILED] * 3
