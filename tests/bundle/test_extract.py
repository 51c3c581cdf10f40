"""A bundle as files."""

import errno
import json
import os
import re

import pytest

from kernelpack.bundle.extract import extract, file_stem
from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.bundle.writer import write_ptx
from kernelpack.errors import BundleError, KernelpackError
from kernelpack.spec.artifact import Ptx
from tests.bundle.test_reader import PROVENANCE


def test_cubins(sound, entries, tmp_path):
    """Every cubin becomes a file of its bytes."""
    extract(open_bundle(sound), tmp_path)
    assert {e.image for e in entries} == {p.read_bytes() for p in tmp_path.glob("*.cubin")}


def test_documents(sound, entries, tmp_path):
    """Every entry becomes a JSON file that names it."""
    extract(open_bundle(sound), tmp_path)
    ids = {json.loads(p.read_text())["id"] for p in tmp_path.glob("*.json")}
    assert ids == {e.variant.id for e in entries}


def test_chosen_entries(sound, entries, tmp_path):
    """Only the entries that are asked for are written."""
    written = extract(open_bundle(sound), tmp_path / "new" / "folder", [entries[0].variant.id])
    stem = file_stem(entries[0].variant.id)
    assert [path.name for path in written] == [f"{stem}.cubin", f"{stem}.json"]


def test_ptx(bundle_path, entries, tmp_path):
    """With the twin beside it, PTX is written too."""
    texts = [Ptx(text=f"ptx of {e.variant.id}") for e in entries]
    write_ptx(texts, twin_of(bundle_path), PROVENANCE)
    extract(open_bundle(bundle_path), tmp_path / "out")
    assert {t.text for t in texts} == {p.read_text() for p in (tmp_path / "out").glob("*.ptx")}


def test_the_twin_of_another_build(bundle_path, tmp_path):
    """PTX of another build beside a bundle is reported as that."""
    write_ptx([Ptx(text="another")], twin_of(bundle_path), PROVENANCE)
    with pytest.raises(BundleError, match="it is of another build"):
        extract(open_bundle(bundle_path), tmp_path / "out")


def test_an_unknown_entry(sound, tmp_path):
    """An id that is not held is refused before anything is written."""
    with pytest.raises(BundleError, match="no entry"):
        extract(open_bundle(sound), tmp_path / "out", ["mla[arch=sm_90a]"])
    assert not (tmp_path / "out").exists()


def test_the_twin_has_no_entries(tmp_path):
    """A bundle of PTX is refused, with the file to give instead."""
    write_ptx([], tmp_path / "x.ptx.kpk", PROVENANCE)
    with pytest.raises(BundleError, match="holds PTX by digest") as caught:
        extract(open_bundle(tmp_path / "x.ptx.kpk"), tmp_path)
    assert caught.value.hint == "give the bundle beside it, `x.kpk`"


def test_all_or_nothing(sound, tmp_path, monkeypatch):
    """Where one file does not fit, none is left, whole or in part, and older ones stay."""
    opened, left = open_bundle(sound), iter([0, 0, errno.ENOSPC])
    first = extract(opened, tmp_path / "out")[0]
    first.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: refuse(next(left)))
    with pytest.raises(KernelpackError, match="No space left"):
        extract(opened, tmp_path / "out", [opened.records()[0].id, opened.records()[1].id])
    assert first.read_bytes() == b"old"
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []


def refuse(code):
    """What the system does: nothing, or an error."""
    if code:
        raise OSError(code, os.strerror(code))


def test_a_folder_that_is_a_file(sound, tmp_path):
    """A folder that cannot be made is an error that names it."""
    (tmp_path / "out").write_text("")
    with pytest.raises(BundleError, match="cannot be written"):
        extract(open_bundle(sound), tmp_path / "out")


NAMES = ["../../etc/passwd", "/etc/passwd", "a\0b", "k[a=1,b=2]", "", ".", "..", "é", "x" * 900]


@pytest.mark.parametrize("name", NAMES)
def test_file_names_are_safe(name):
    """No id leaves the folder, hides its file or exceeds a file name."""
    assert re.fullmatch(r"(?!\.)[\w.=-]{9,200}", file_stem(name), re.ASCII)


def test_file_names_differ():
    """Ids that differ in letters that are not kept give different names."""
    assert len({file_stem(name) for name in ["a[b", "a]b", "a_b"]}) == 3
