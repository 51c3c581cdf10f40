"""Verbs take the folder of a kernel of one's own as they take kernelpack's own kernels."""

import json

import pytest

from kernelpack.kernels.folder import Folder
from kernelpack.wheel.sources import _files
from tests.kernels.own import ORACLE, own
from tests.verify import small

IDS = ["twice[arch=sm_100a,tile=32]"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder, in the one that commands are called in."""
    monkeypatch.chdir(tmp_path)
    return own(tmp_path)


@pytest.fixture
def bundle(tmp_path):
    """A bundle of that kernel and its PTX."""
    return small.written(tmp_path / "x.kpk", [(small.variant(), small.ptx())])


@pytest.mark.parametrize("words", [["twice"], ["."], ["--kernels", "twice"], ["--kernels", "."]])
def test_list(kernelpack, folder, words):
    """A kernel is listed by its folder, or by the one around it."""
    said = kernelpack("list", *words)
    assert (said.code, said.out.splitlines()) == (0, IDS)


def test_list_by_variable(kernelpack, folder, monkeypatch):
    """The variable names folders where no option does."""
    monkeypatch.setenv("KERNELPACK_KERNELS", f"{folder}:{own(folder.parent / 'more', stem='two')}")
    assert kernelpack("list").out.splitlines() == [*IDS, IDS[0].replace("twice", "two")]
    assert kernelpack("list", "--kernels", "twice").out.splitlines() == IDS


def test_a_variable_that_is_wrong(kernelpack, folder, monkeypatch):
    """The variable is named where its folder is not there."""
    monkeypatch.setenv("KERNELPACK_KERNELS", "absent")
    said = kernelpack("list")
    assert said.code == 1
    assert "KERNELPACK_KERNELS: absent: is not a folder" in said.err


def test_run(kernelpack, folder, bundle):
    """A kernel is checked against the oracle of its folder."""
    said = kernelpack("run", "twice", "n=7", "--kernels", "twice", "--bundle", bundle, "--json")
    assert said.code == 0
    (output,) = json.loads(said.out)["outputs"]
    assert (output["name"], output["right"]) == ("y", True)


def test_run_without_the_folder(kernelpack, folder, bundle):
    """Code of a folder that is not named is not run."""
    said = kernelpack("run", "twice", "--bundle", bundle)
    assert said.code == 1
    assert "no oracle says what kernel `twice` computes" in said.err


def test_run_wrong(kernelpack, folder, bundle):
    """What the oracle does not expect is wrong."""
    (folder / "twice.py").write_text(ORACLE.replace("2 * arrays", "3 * arrays"))
    said = kernelpack("run", "twice", "--kernels", "twice", "--bundle", bundle)
    assert said.code == 1
    assert "WRONG" in said.out


def test_verify(kernelpack, folder, bundle):
    """A bundle is verified by workers that load the oracle by themselves."""
    said = kernelpack("verify", bundle, "--kernels", "twice", "--schedule", "eager")
    assert said.code == 0
    assert "1 of 1 variant" in said.out


def test_verify_without_the_folder(kernelpack, folder, bundle):
    """The error says how an oracle is named."""
    said = kernelpack("verify", bundle)
    assert said.code == 1
    assert "hint: name the kernel's folder with --kernels; known are kv_cache" in said.err


def test_verify_tells_a_slip_of_the_oracle(kernelpack, folder, bundle):
    """An oracle that raises ends a verification, and is not a fault of the kernel."""
    (folder / "twice.py").write_text(ORACLE.replace('return {"y"', '1 / 0\n    return {"y"'))
    said = kernelpack("verify", bundle, "--kernels", "twice", "--schedule", "eager")
    assert said.code == 1
    assert "twice/twice.py:15: ZeroDivisionError: division by zero" in said.err


def test_verify_again_with_another_oracle(kernelpack, folder, bundle):
    """What was found with an oracle says nothing of another one."""
    words = ("verify", bundle, "--kernels", "twice", "--schedule", "eager")
    assert kernelpack(*words).code == 0
    (folder / "twice.py").write_text(ORACLE.replace("2 * arrays", "3 * arrays"))
    assert kernelpack(*words).code == 1


def test_trace(kernelpack, folder, bundle):
    """A trace takes the sizes that the oracle says."""
    said = kernelpack("trace", "twice", "--bundle", bundle, "--kernels", "twice")
    assert said.code == 0
    assert "n=5" in said.out


def test_no_such_kernel(kernelpack, folder):
    """A folder without a kernel is reported."""
    (folder.parent / "empty").mkdir()
    said = kernelpack("list", "--kernels", "empty")
    assert said.code == 1
    assert "empty: holds no kernel" in said.err


@pytest.mark.toolchain
def test_build_and_check(kernelpack, folder):
    """A folder is built, and its bundle rebuilt from it; a change of its template is seen."""
    assert kernelpack("build", "twice", "-o", "twice.kpk").code == 0
    words = ("check", "twice.kpk", "--rebuild", "100%", "--kernels", "twice")
    assert kernelpack(*words).code == 0
    (folder / "twice.cu.j2").write_text((folder / "twice.cu.j2").read_text() + "// changed\n")
    said = kernelpack(*words)
    assert said.code == 1
    assert "twice/twice.cu.j2: is not what twice.kpk was built from" in said.out


@pytest.mark.toolchain
def test_verify_a_folder(kernelpack, folder):
    """A folder that is named is built and verified, against the oracle in it."""
    said = kernelpack("verify", "twice", "--schedule", "eager")
    assert said.code == 0
    assert "1 of 1 variant" in said.out


@pytest.mark.toolchain
def test_a_mistake_in_the_template(kernelpack, folder):
    """The error is at the line of the file in the folder."""
    path = folder / "twice.cu.j2"
    path.write_text(path.read_text().replace("2 * x[i]", "2 * z[i]"))
    said = kernelpack("build", "twice", "-o", "twice.kpk")
    assert said.code == 1
    assert "twice/twice.cu.j2:5" in said.out + said.err


def test_a_name_that_the_manifest_does_not_give(kernelpack, folder):
    """Jinja's errors are at the line of the file, too."""
    path = folder / "twice.cu.j2"
    path.write_text(path.read_text().replace("{{ TILE }} +", "{{ TILES }} +"))
    said = kernelpack("build", "twice", "-o", "twice.kpk")
    assert said.code == 1
    assert "twice/twice.cu.j2:4: 'TILES' is undefined" in said.out + said.err


def test_no_template(kernelpack, folder):
    """A template of another name is named."""
    (folder / "twice.cu.j2").rename(folder / "twise.cu.j2")
    said = kernelpack("build", "twice", "-o", "twice.kpk")
    assert said.code == 1
    assert "did you mean `twice/twise.cu.j2`?" in said.out + said.err


def test_a_variant_that_serves_no_case(kernelpack, folder, bundle):
    """Nothing was proven of it, and that is no success."""
    (folder / "twice.py").write_text(
        ORACLE.replace("n=(5, 40, 64)", "n=2000").replace("n=500", "n=3000")
    )
    said = kernelpack("verify", bundle, "--kernels", "twice")
    assert said.code == 1
    assert f"serve no case, so nothing is proven of them: 1 variant, such as {IDS[0]}" in said.out
    assert "only forced" not in said.out
    record = json.loads(bundle.with_name("x.verified.json").read_text())
    assert (record["right"], record["entries"][IDS[0]]["right"]) == (False, False)


def test_large_cases_are_not_emulated(kernelpack, folder, bundle):
    """A GPU alone runs them, though a variant is selected by no other."""
    (folder / "twice.py").write_text(ORACLE.replace("LARGE = every(n=500)", "LARGE = every(n=900)"))
    words = ("verify", bundle, "--kernels", "twice", "--full", "--schedule", "eager", "--json")
    (record,) = json.loads(kernelpack(*words).out)
    sizes = {run["sizes"]["n"] for run in record["entries"][IDS[0]]["runs"]}
    assert sizes == {5, 40, 64}


def test_no_template_at_all(kernelpack, folder):
    """The error says where it would be, and not which templates other kernels have."""
    (folder / "twice.cu.j2").unlink()
    said = kernelpack("build", "twice", "-o", "twice.kpk")
    assert said.code == 1
    assert "twice/twice.cu.j2: there is no such template" in said.err
    assert f"hint: it would be {folder}/twice.cu.j2\n" in said.err


@pytest.fixture
def headed(folder):
    """The folder with a header, which includes another."""
    template = folder / "twice.cu.j2"
    text = template.read_text().replace("2 * x[i]", "doubled(x[i])")
    template.write_text(text.replace('extern "C"', '#include <twice/doubled.cuh>\nextern "C"'))
    (folder / "detail").mkdir()
    inner = "#pragma once\nconstexpr float FACTOR = 2;\n"
    (folder / "detail" / "factor.cuh").write_text(inner)
    outer = "#pragma once\n#include <twice/detail/factor.cuh>\n"
    function = "__device__ float doubled(float x) { return FACTOR * x; }\n"
    (folder / "doubled.cuh").write_text(outer + function)
    return folder


@pytest.mark.toolchain
def test_headers_in_the_folder(kernelpack, headed):
    """A kernel includes headers beside it by the folder's name; a change of one is seen."""
    assert kernelpack("build", "twice", "-o", "twice.kpk").code == 0
    words = ("check", "twice.kpk", "--rebuild", "100%", "--kernels", "twice")
    assert kernelpack(*words).code == 0
    inner = headed / "detail" / "factor.cuh"
    inner.write_text(inner.read_text().replace("2", "3"))
    said = kernelpack(*words)
    assert "factor.cuh: is not what twice.kpk was built from" in said.out
    assert "1 compiled" in kernelpack("build", "twice", "-o", "twice.kpk").err
    said = kernelpack("verify", "twice.kpk", "--kernels", "twice", "--schedule", "eager")
    assert said.code == 1


@pytest.mark.toolchain
def test_a_header_that_is_not_there(kernelpack, headed):
    """The compiler says so, at the line of the header that includes it."""
    (headed / "detail" / "factor.cuh").unlink()
    said = kernelpack("build", "twice", "-o", "twice.kpk")
    assert said.code == 1
    assert (
        'twice/doubled.cuh:2: cannot open source file "twice/detail/factor.cuh"'
        in said.out + said.err
    )


def test_headers_go_into_the_wheel(headed):
    """A wheel of the sources has headers where the folder has them."""
    found = {path.relative_to(headed).as_posix() for path in _files(Folder(headed))}
    assert {"doubled.cuh", "detail/factor.cuh"} <= found
