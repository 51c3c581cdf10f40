"""Host programs on the emulator, from their start to their report."""

import os
import re
import signal
import subprocess
import time

import pytest

from kernelpack.emulate import standin
from kernelpack.emulate.devices import find as find_device
from kernelpack.emulate.emulate import emulate
from kernelpack.emulate.options import Options
from kernelpack.emulate.report import record
from kernelpack.emulator.schedule import Schedule
from kernelpack.errors import KernelpackError, ToolchainError, UnsupportedError
from kernelpack.toolchain.locate import find
from tests.emulate.images import SCALE, SPIN, elf
from tests.host import need

pytestmark = pytest.mark.toolchain

PLUGIN = """
#include <cuda_runtime_api.h>
extern "C" int work() { void* memory; return cudaMalloc(&memory, 64); }
"""
OPENS = """
#include <dlfcn.h>
#include <cstdio>
int main(int, char** words) {
  void* plugin = dlopen(words[1], RTLD_NOW);
  std::printf("%d\\n", reinterpret_cast<int (*)()>(dlsym(plugin, "work"))());
}
"""


@pytest.fixture
def run(libraries, host, capfd):
    """Run the host program: its report, stdout and stderr."""

    def start(*words, **options):
        told = []
        given = Options(environment=dict(os.environ), **options)
        report = emulate([str(host), *map(str, words)], libraries, given, told.append)
        return report, capfd.readouterr().out, told

    return start


def test_a_kernel_runs(run, ptx):
    """A launch runs on the emulator and its results are in the program's device memory."""
    report, printed, told = run("scale", ptx)
    assert printed == "0 3 0\n"
    assert report.is_right
    assert told[0].startswith("scale: grid (1, 1, 1) block (32, 1, 1)")


def test_a_fault_is_a_launch_failure(run, ptx):
    """The program gets it when it waits, and its last error says so, as on a GPU."""
    ptx.write_text(ptx.read_text().replace("ret;", "trap;"))
    report, printed, _ = run("scale", ptx)
    assert printed == "719 1.5 719\n"
    assert (report.returncode, report.is_right) == (0, False)


@pytest.mark.parametrize(
    ("act", "printed"),
    [
        ("memory", "1010101 1 0 1\n"),
        ("maps", "0 0 0 1\n"),
        ("properties", "Emulated B200 10.0 148\n"),
        ("forks", "3 0\n"),
        ("defers", "600 1 0\n"),
    ],
)
def test_the_runtime_answers(run, act, printed):
    """Memory, tensor maps and properties are as a device's."""
    assert run(act)[1] == printed


def test_calls_that_name_nothing(run, ptx):
    """Null pointers and invalid handles are answered as CUDA does; all are counted."""
    report, printed, _ = run("nothing", ptx)
    assert printed == "1 1 1 400 400 500 400 1 1 101 400 400 1 1 400 400 400 "
    assert (len(report.errors), report.is_right) == (16, False)


def test_launches_that_are_refused(run, ptx):
    """A launch beyond the device's limits is an invalid value at once, and breaks nothing."""
    report, printed, told = run("shapes", ptx)
    assert printed == "1 1 1 1 1 1 1 1 1 0\n"
    assert (len(report.errors), report.launches) == (9, ())
    assert told[1] == "error: scale: a grid of (1, 70000, 1); y may be 1 to 65535"


def test_a_second_free_counts(run):
    """A call that fails makes the run fail, though the program does not."""
    report, *_ = run("memory")
    assert (report.returncode, report.is_right) == (0, False)
    assert [error.rule for error in report.errors] == ["problem", "problem"]


def test_an_address_outside(run, ptx):
    """A launch that stores outside every allocation fails, as on a GPU, when it is waited for."""
    outside = "add.s64 %rd1, %rd2, 64;"
    ptx.write_text(ptx.read_text().replace("add.s64 %rd1, %rd1, %rd2;", outside))
    assert run("scale", ptx)[1] == "700 1.5 700\n"


def test_a_program_that_starts_another(run, host):
    """Both are served, though the first waits for the second."""
    assert run("nests", host)[1] == "Emulated B200 10.0 148\n"


def test_a_program_that_leaves(run, ptx):
    """A program that ends in the middle of a launch is reported, and so is the launch."""
    ptx.write_text(SPIN)
    report, _, told = run("leaves", ptx)
    assert told[-1] == "the program ended while the emulator did its `launch`"
    assert (len(report.launches), report.is_right) == (1, True)


def test_memory_is_used_again(run):
    """What was freed can be allocated again when the rest is used up."""
    assert run("recycles", memory_bytes=1 << 20)[1] == "0\n"


def test_a_warp_that_no_launch_has(run, ptx):
    """A schedule that holds back a warp which is not there proved nothing by that name."""
    report, *_ = run("scale", ptx, schedule=Schedule.parse("starving:5:5"))
    assert report.missed == ("--schedule `starving:5:5` names a warp that no launch on trial has",)
    assert not report.is_right


def test_kernels_that_no_launch_has(run, ptx):
    """The error of a pattern that no kernel matches lists the kernels that ran."""
    report, *_ = run("scale", ptx, kernels="TYPO", natives={"x*": print})
    assert report.missed == (
        "--kernels `TYPO` matches no launch; launched: scale",
        "--native `x*` matches no launch; launched: scale",
    )


def test_a_module_variable(run, ptx):
    """A variable of a module can be found and read by the program."""
    assert run("symbol", ptx)[1] == "0 4 7\n"


def test_another_device(run):
    """The program finds the device that was asked for."""
    small = find_device("h100").with_multiprocessors(3)
    assert run("properties", device=small)[1] == "Emulated H100 9.0 3\n"


def test_a_call_that_is_not_modelled(run):
    """It is refused by name, and the run counts as failed."""
    report, printed, _ = run("captures")
    assert printed == "801\n"
    assert report.refused == ("cudaStreamBeginCapture is not modelled",)
    assert not report.is_right


def test_the_program_fails(run):
    """A program's own exit code is the report's."""
    assert run("fails")[0].returncode == 7


def test_the_record(run, ptx):
    """The record holds every launch with its numbers."""
    kept = record(run("scale", ptx)[0])
    assert (kept["right"], kept["returncode"], len(kept["launches"])) == (True, 0, 1)


def test_no_such_program(libraries):
    """A program that is not there is named."""
    with pytest.raises(KernelpackError, match="nowhere: no such program"):
        emulate(["nowhere"], libraries, Options(), print)


def test_a_static_runtime_is_refused(libraries, tmp_path):
    """A program whose runtime cannot be replaced is not started."""
    path = tmp_path / "program"
    path.write_bytes(elf({".nv_fatbin": b"x"}))
    path.chmod(0o755)
    with pytest.raises(UnsupportedError, match="linked statically"):
        emulate([str(path)], libraries, Options(), print)


def test_outside_the_emulator(host, libraries):
    """A program that was linked against the stand-in says how to run it."""
    done = subprocess.run(
        [host, "properties"],
        env={"LD_LIBRARY_PATH": str(libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "kernelpack emulate PROGRAM" in done.stderr) == (125, True)


def test_no_compiler(tmp_path, monkeypatch):
    """Without a host compiler the stand-in cannot be made; the message says what to install."""
    monkeypatch.setattr(standin, "COMPILER", "g++-that-is-not-there")
    with pytest.raises(ToolchainError, match="needs a host g"):
        standin.build(tmp_path, [])


def test_headers_that_are_not_there(tmp_path):
    """Without CUDA's headers the error has the compiler's own words."""
    need("g++")
    with pytest.raises(ToolchainError, match=r"does not compile(.|\n)*cuda\.h"):
        standin.build(tmp_path, [])


def test_the_stand_in_is_kept(libraries):
    """The same sources and headers give the same folder, which is not made anew."""
    assert standin.build(libraries.parents[1], find().include_dirs) == libraries


def test_host_access_to_device_memory_is_named(run):
    """The program gets its SIGSEGV, as on a GPU, after the stand-in has printed the address."""
    report, printed, told = run("touches")
    assert (report.returncode, printed) == (-signal.SIGSEGV, "")
    assert "the host reads device memory at 0x" in told[0]
    assert "12 bytes into" in told[0]


def test_a_program_with_a_timer(run, ptx):
    """A signal handler of the program's interrupts no call."""
    assert run("interrupts", ptx)[1] == "0 3 0\n"


def test_a_child_that_outlives_its_parent_holds_nothing(run):
    """The connection ends with the process that made it."""
    begin = time.monotonic()
    assert run("outlived")[1] == "gone\n"
    assert time.monotonic() - begin < 30


def test_calls_say_what_is_so(run):
    """Sizes, kinds of pointers, and CUDA's own statuses for what is wrong."""
    report, printed, _ = run("answers")
    assert printed == "0 1 1 2 1 3 0 400 400 400 21 12 0 500 1 0 1024 1\n"
    assert report.refused == ()


def test_memory_of_the_program_that_is_registered(run):
    """It may be copied from; that kernels reach it is refused by name."""
    report, printed, _ = run("registers")
    assert printed == "0 801 0 801 1 "
    assert report.refused == (
        "cudaHostGetDevicePointer of memory that cudaHostAlloc did not make is not modelled",
        "cudaHostRegister with cudaHostRegisterMapped is not modelled",
    )


def test_a_launch_that_never_ends(run, ptx):
    """It is given up after as many steps as the run may take, and fails as on a GPU."""
    ptx.write_text(SPIN.replace("200000", "0xffffffff").replace("spin", "scale"))
    report, printed, told = run("scale", ptx, step_limit=1000)
    assert (printed, len(report.launches)) == ("719 1.5 719\n", 1)
    assert "1000" in told[-1]


def test_a_call_that_is_looked_up(run):
    """It is found, and refused by name when it is made; an unknown name is not found."""
    report, printed, _ = run("looks_up")
    assert printed == "0 801 500 "
    assert report.refused == ("cuGraphCreate is not modelled",)


def test_machine_code_whose_ptx_is_known(run, tmp_path):
    """All of it is handed over, and the text that it was made of runs."""
    code, path = elf({".text": b"machine code", ".more": b"1234567"}), tmp_path / "code.elf"
    path.write_bytes(code + b"what comes after it")
    report, printed, _ = run("scale", path, text_of=lambda image: SCALE if image == code else None)
    assert (printed, report.refused) == ("0 3 0\n", ())


def test_contexts(run):
    """Each thread has a stack of them, a stream has the one that was current when it was made."""
    report, printed, _ = run("contexts")
    assert printed == "1 0 0 1 0 1 0 1 1 -5 1 0 400 0 201 1 "
    assert [error.text for error in report.errors] == [
        "no stream has this handle",
        "no context has this handle",
    ]


def test_kernels_and_addresses(run, ptx):
    """What a kernel takes, how many of its blocks fit, whose memory an address is."""
    report, printed, _ = run("enquires", ptx)
    assert printed == "0 scale 0 1 3 8 4 1 0 148 296 1024 0 2 0 1 256 1 0 0 3 9 7 9 "
    assert report.is_right


def test_every_call_is_there(libraries):
    """What CUDA's headers declare links: it is modelled, or refused by name."""
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", libraries / standin.LIBRARY], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    there = {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}
    folder = find().include_dirs[0]
    runtime = (folder / "cuda_runtime_api.h").read_text(encoding="utf-8")
    driver = (folder / "cuda.h").read_text(encoding="utf-8")
    driver = driver[: driver.rindex("#if defined(__CUDA_API_VERSION_INTERNAL)")]
    versions = dict(re.findall(r"#\s*define\s+(cu[A-Z]\w*)\s+(cu\w+_v\d+)\s*\n", driver))
    versions |= dict(
        re.findall(r"#\s*define\s+(cu[A-Z]\w*)\s+__CUDA_API_PT[DS][SZ]\((\w+)\)", driver)
    )
    wanted = {versions.get(n, n) for n in re.findall(r"CUresult CUDAAPI\s+(cu\w+)\(", driver)}
    wanted |= set(re.findall(r"CUDARTAPI (cuda\w+)\(", runtime))
    assert sorted(wanted - there) == []


def test_a_plugin_with_a_static_runtime(libraries, capfd, tmp_path):
    """It finds no device, and a message says how to link it; its program runs on."""
    need("g++")
    (tmp_path / "plugin.cpp").write_text(PLUGIN)
    (tmp_path / "main.cpp").write_text(OPENS)
    static = find().include_dirs[0].parent / "lib" / "libcudart_static.a"
    include = f"-I{find().include_dirs[0]}"
    for words in (
        [
            "-shared",
            "-fPIC",
            "plugin.cpp",
            include,
            static,
            "-ldl",
            "-lrt",
            "-pthread",
            "-o",
            "p.so",
        ],
        ["main.cpp", "-ldl", "-o", "main"],
    ):
        subprocess.run(["g++", *words], cwd=tmp_path, check=True)
    given = Options(environment=dict(os.environ))
    report = emulate([str(tmp_path / "main"), str(tmp_path / "p.so")], libraries, given, print)
    assert capfd.readouterr().out.splitlines()[-1] == "801"
    assert all("use -cudart shared" in refused for refused in report.refused)
    assert report.refused


def test_pinned_and_managed_memory_in_a_kernel(run, ptx):
    """The host and kernels reach both at one address."""
    report, printed, _ = run("shares", ptx)
    assert (printed, report.is_right) == ("0 3 0 3 ", True)
