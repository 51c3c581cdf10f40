"""`kernelpack build`, with compilers that compile nothing."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from kernelpack.build import cluster
from kernelpack.bundle.reader import open_bundle

IDS = [f"fill[arch=sm_90a,size={size}]" for size in (1, 2, 3)]


def states(said):
    return [variant["state"] for variant in json.loads(said.out)["variants"]]


@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_remote_cache(kernelpack, project, tmp_path, monkeypatch, given):
    """Objects are shared where the option, or else the variable, says; trouble is reported once."""
    (tmp_path / "afar").write_text("in the way of a folder")
    url = f"file://{tmp_path / 'afar'}"
    monkeypatch.setenv("KERNELPACK_REMOTE_CACHE", url if given == "variable" else "nothing://")
    option = ["--remote-cache", url] if given == "option" else []
    said = kernelpack("build", "-o", tmp_path / "x.kpk", *option)
    assert (said.code, said.err.count(f"warning: {url}: no longer used: ")) == (0, 1)


def test_a_scheduler_that_is_not_there(kernelpack, project, monkeypatch):
    """`--scheduler` is who compiles; one that does not answer is named."""
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.2)
    said = kernelpack("build", "--scheduler", "tcp://127.0.0.1:9")
    assert (said.code, "tcp://127.0.0.1:9: no dask scheduler answers" in said.err) == (1, True)


def test_builds_what_comes_with_kernelpack(kernelpack, project):
    """With no manifest named, those of kernelpack are built; the sum goes to stderr."""
    said = kernelpack("build", "-o", project.output)
    assert (said.code, said.out) == (0, "")
    assert "3 variants with cuda-13.4 (nvrtc)" in said.err
    assert ": 3 compiled\n" in said.err
    assert f"wrote {project.output} (" in said.err
    assert len(open_bundle(project.output)) == 3


def test_builds_a_manifest_by_name(kernelpack, project):
    """A manifest named is the one built."""
    named = project.root / "named.yaml"
    named.write_text(project.manifest.read_text().replace("[1, 2, 3]", "[2]"))
    kernelpack("build", named, "-o", project.output)
    assert [v.id for v in open_bundle(project.output).variants()] == IDS[1:2]


def test_again(kernelpack, project):
    """A second build says that nothing changed."""
    kernelpack("build", "-o", project.output)
    said = kernelpack("build", "-o", project.output)
    assert said.code == 0
    assert ": 3 cached\n" in said.err
    assert f"unchanged: {project.output}" in said.err


def test_keep_and_target(kernelpack, project):
    """`-k` and `-t` choose among the variants."""
    kernelpack("build", "-o", project.output, "-k", "size=1 or size=2", "-t", "sm_90a")
    assert [v.id for v in open_bundle(project.output).variants()] == IDS[:2]


def test_explain(kernelpack, project):
    """`--explain` gives each compiled variant's reason, on stdout."""
    kernelpack("build", "-o", project.output)
    project.header("one").write_text("// another\n")
    said = kernelpack("build", "-o", project.output, "--explain")
    assert said.out.startswith(f"{IDS[0]}: compiled: header kp/one.cuh changed")
    assert len(said.out.splitlines()) == 1


def test_dry_run(kernelpack, project):
    """`--dry-run` says what would be compiled and makes nothing."""
    said = kernelpack("build", "-o", project.output, "--dry-run")
    assert said.code == 0
    assert [line.split(": ")[0] for line in said.out.splitlines()] == IDS
    assert ": 3 stale\n" in said.err
    assert not project.output.exists()


def test_json(kernelpack, project):
    """`--json` is the whole report, and stdout holds nothing else."""
    told = json.loads(kernelpack("build", "-o", project.output, "--json").out)
    assert told["bundle"] == str(project.output)
    assert told["root"] == open_bundle(project.output).root
    assert [variant["id"] for variant in told["variants"]] == IDS


def test_json_of_a_failure(kernelpack, project):
    """A failure is in the report for programs too, in its parts, and the exit code says so."""
    project.order(2, "refuse")
    said = kernelpack("build", "-o", project.output, "--json")
    assert said.code == 1
    assert states(said) == ["compiled", "failed", "compiled"]
    error = json.loads(said.out)["variants"][1]["error"]
    assert (error["where"], error["what"]) == ("fill/kernel.cu.j2:1", "expected a `;`")


def test_failure(kernelpack, project):
    """A failure is reported with its place; no bundle is written, and the exit code is 1."""
    project.order(2, "refuse")
    said = kernelpack("build", "-o", project.output)
    assert (said.code, said.out) == (1, "")
    assert "error: fill/kernel.cu.j2:1: expected a `;`\n  in fill[arch=sm_90a,size=2]\n" in said.err
    assert f"{project.output} was not written" in said.err


def test_manifest_error(kernelpack, project):
    """A mistake in a manifest is reported by line and column, before any compiler runs."""
    project.manifest.write_text(project.manifest.read_text().replace("axes:", "axis:"))
    said = kernelpack("build", "-o", project.output)
    assert said.code == 1
    assert said.err.startswith(f"error: {project.manifest}:7:1: unknown key `axis`")
    assert "hint: did you mean `axes`?" in said.err
    assert project.compiled() == []


def test_no_manifests(kernelpack, project, monkeypatch):
    """An error says that none comes with kernelpack and none is named."""
    monkeypatch.setattr(import_module("kernelpack.cli.settings"), "manifests", tuple)
    said = kernelpack("build", "-o", project.output)
    assert said.code == 1
    assert "no manifests found" in said.err


@pytest.fixture
def asked(project, monkeypatch):
    """The requests that reach the build."""
    requests = []

    def build(options, progress):
        requests.append(options)
        return project.build()

    monkeypatch.setattr(import_module("kernelpack.cli.build"), "build", build)
    return requests


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--toolchain", "cuda-12.9"], "toolchain", "cuda-12.9"),
        (["--front-end", "nvcc"], "front_end", "nvcc"),
        (["--jobs", "7"], "jobs", 7),
        (["-j", "7"], "jobs", 7),
        ([], "jobs", None),
        ([], "targets", None),
        (["--templates", "."], "templates", Path()),
        (["--dry-run"], "dry_run", True),
    ],
)
def test_options_are_handed_on(kernelpack, asked, words, name, value):
    """Each option arrives in the request under its name."""
    kernelpack("build", *words)
    assert getattr(asked[0], name) == value


def test_explain_nothing(kernelpack, project):
    """Where nothing was compiled that is what `--explain` says."""
    kernelpack("build", "-o", project.output)
    said = kernelpack("build", "-o", project.output, "--explain")
    assert (said.out, "nothing was compiled: no input" in said.err) == ("", True)
