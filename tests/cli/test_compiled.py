"""`kernelpack emulate --compile`: a program of one source, by one word."""

from pathlib import Path

import pytest

from tests.host import need
from tests.kept import FOLDER

PROGRAM = """#include <kp/ptx/lane.cuh>
__global__ void twice(int* numbers) { numbers[threadIdx.x] *= 2; }

int main(int, char** words) {
    int* numbers;
    cudaMallocManaged(&numbers, 64 * sizeof(int));
    for (int i = 0; i < 64; ++i) numbers[i] = i;
    twice<<<1, 64>>>(numbers);
    cudaDeviceSynchronize();
    return numbers[63] == 126 && *words[1] == 's' ? 0 : 3;
}
"""


@pytest.fixture
def emulate(kernelpack, tmp_path, monkeypatch):
    """Run `kernelpack emulate WORD ...` in a folder of its own."""
    need("g++")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
    return lambda *words: kernelpack("emulate", *words)


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("device", ["b200", "h100"])
def test_it_runs(emulate, device):
    """A source is compiled for the device and run, with its arguments."""
    Path("program.cu").write_text(PROGRAM)
    said = emulate("--device", device, "--compile", "program.cu", "so")
    assert said.code == 0, said.err
    assert "1 launch, " in said.err
    assert sorted(map(str, Path().iterdir())) == ["program.cu"]


@pytest.mark.toolchain
def test_a_mistake_is_nvccs(emulate):
    """nvcc's errors are shown in its words."""
    Path("program.cu").write_text("int main() { return x; }")
    said = emulate("--compile", "program.cu")
    assert said.code == 1
    assert 'identifier "x" is undefined' in said.err


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["absent.cu", "program"])
def test_no_source(emulate, name):
    """What is not a source, or is not there, is refused."""
    Path("program").write_text("")
    said = emulate("--compile", name)
    assert said.code == 1
    assert f"{name}: is not a source to compile" in said.err
