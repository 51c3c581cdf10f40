"""Both files come to their places whole, and are touched only where they differ."""

import pytest

from kernelpack.build.finish import Files, place
from kernelpack.errors import BundleError

FILES = Files(bundle=b"bundle", ptx=b"ptx")


@pytest.fixture
def output(tmp_path):
    return tmp_path / "new" / "folder" / "X.kpk"


def test_place(output):
    """The bundle and its twin lie side by side, and nothing else does."""
    assert place(FILES, output)
    assert {path.name: path.read_bytes() for path in output.parent.iterdir()} == {
        "X.kpk": b"bundle",
        "X.ptx.kpk": b"ptx",
    }


def test_place_again(output):
    """The same bytes leave the files as they are."""
    place(FILES, output)
    before = output.stat()
    assert not place(FILES, output)
    after = output.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    "files", [Files(bundle=b"B", ptx=b"ptx"), Files(bundle=b"bundle", ptx=b"P")]
)
def test_place_what_changed(output, files):
    """A change of either file is a change."""
    place(FILES, output)
    assert place(files, output)
    assert output.read_bytes() == files.bundle


def test_place_in_a_file(tmp_path):
    """A folder that is a file is the user's error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError):
        place(FILES, tmp_path / "file" / "X.kpk")
