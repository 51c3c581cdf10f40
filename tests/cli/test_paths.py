"""Arguments that should be paths and are not."""

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ("build", "-o", ""),
        ("build", ""),
        ("list", ""),
        ("verify", ""),
        ("check", ""),
        ("ls", ""),
        ("info", ""),
        ("merge", "", "-o", "x.kpk"),
        ("extract", "x.kpk", "-o", ""),
        ("diff", "", ""),
    ],
)
def test_an_empty_text(kernelpack, words):
    """An empty text is refused by name wherever a path is asked for."""
    said = kernelpack(*words)
    assert (said.code, "an empty text is not a path" in said.err) == (2, True)


@pytest.mark.parametrize("verb", ["verify", "ls"])
def test_a_folder(kernelpack, tmp_path, monkeypatch, verb):
    """The working folder is not a bundle, and no traceback."""
    monkeypatch.chdir(tmp_path)
    said = kernelpack(verb, ".")
    assert (said.code, said.err.startswith("error: .")) == (1, True)


def test_a_bundle_for_a_manifest(kernelpack, project, tmp_path):
    """A bundle where a manifest is asked for is named as what it is."""
    kernelpack("build", "-o", tmp_path / "x.kpk")
    said = kernelpack("build", tmp_path / "x.kpk", "-o", tmp_path / "y.kpk")
    assert (
        said.code,
        "x.kpk: cannot be read: it is a bundle\nhint: `kernelpack ls`" in said.err,
    ) == (1, True)
