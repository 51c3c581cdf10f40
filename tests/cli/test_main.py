"""The command itself: verbs, wrong words, errors of every kind, and how fast it starts."""

import json
import os
import resource
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kernelpack import __version__
from kernelpack.cli import main as module
from kernelpack.cli.main import VERBS, verb
from tests.fakes.work import wait_for
from tests.programs import hear_interrupts, started

PROGRAM = "from kernelpack.cli.main import main; main()"
MANIFESTS = Path(__file__).parents[2] / "manifests"
HEAVY = ("jinja2", "pydantic", "ruamel.yaml", "cuda", "numpy", "ml_dtypes", "zstandard", "elftools")


def start(*words, **options):
    """`kernelpack` as a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_interrupts,
        **options,
    )


def test_help_names_every_verb(kernelpack):
    """The help lists each verb, on stdout."""
    said = kernelpack("--help")
    assert said.code == 0
    assert [name for name in VERBS if f" {name} " not in said.out] == []
    assert said.err == ""


def test_no_words(kernelpack):
    """With no verb the help is printed, and it counts as wrong usage."""
    said = kernelpack()
    assert (said.code, said.out) == (2, "")
    assert "Usage: kernelpack" in said.err


def test_version(kernelpack):
    """The version is the package's; `-V` is short for it."""
    assert kernelpack("-V") == kernelpack("--version")
    assert kernelpack("--version").out == f"kernelpack, version {__version__}\n"


def test_every_module_is_a_verb():
    """A file that holds a command is listed as a verb, and the other way round."""
    folder = Path(module.__file__).parent
    held = {p.stem for p in folder.glob("*.py") if "\ndef command(" in p.read_text()}
    assert held == set(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_help_of_a_verb(kernelpack, name):
    """A verb's help calls it by its whole name, and begins with its line of the list."""
    said = kernelpack(name, "--help")
    assert said.code == 0
    assert f"Usage: kernelpack {name} " in said.out
    assert verb(name).help.splitlines()[0] == VERBS[name]


@pytest.mark.parametrize("name", VERBS)
def test_every_option_has_help(name):
    """No option is left unexplained."""
    options = [p for p in verb(name).params if p.param_type_name == "option"]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("words", [["help"], ["help", "ls"]])
def test_help(kernelpack, words):
    """`help` and `help VERB` are `--help` and `VERB --help`."""
    assert kernelpack(*words) == kernelpack(*words[1:], "--help")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["bulid"], "error: kernelpack: no verb `bulid`. did you mean `build`?\n"),
        (["ls"], "error: kernelpack ls: Missing argument 'BUNDLE'\nhint: kernelpack ls --help\n"),
        (["list", "--jsno"], "Did you mean '--json'?\nhint: kernelpack list --help\n"),
        (["build", "-t", "sm_80"], "'sm_80' is not one of 'sm_100a', 'sm_103a'"),
        (["build", "-t", "sm_120a"], "`sm_120a` is not a target: it has 99 KiB of shared memory"),
        (["build", "--jobs", "0"], "0 is not in the range x>=1"),
        (["--bundle", "x"], "No such option"),
    ],
)
def test_wrong_usage(kernelpack, words, says):
    """Wrong words exit 2, and the message names the verb and where its help is."""
    said = kernelpack(*words)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


@pytest.mark.parametrize("name", ["ls", "info", "extract"])
def test_missing_bundle(kernelpack, tmp_path, name):
    """A file that is not there is named, with what would be right."""
    where = ["-o", tmp_path] if name == "extract" else []
    said = kernelpack(name, tmp_path / "no.kpk", *where)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {tmp_path}/no.kpk: cannot be read: No such file")
    assert "\nhint: " in said.err


@pytest.mark.parametrize("name", ["ls", "info"])
def test_bad_bundle(kernelpack, tmp_path, name):
    """A file that is something else is refused by name."""
    (tmp_path / "x.kpk").write_bytes(b"something else" * 100)
    said = kernelpack(name, tmp_path / "x.kpk")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {tmp_path}/x.kpk: ")


def test_missing_builder(kernelpack, monkeypatch):
    """Where the builder is not installed, its verbs say which extra holds it."""
    monkeypatch.setitem(sys.modules, "kernelpack.manifest.schema", None)
    monkeypatch.delitem(sys.modules, "kernelpack.cli.list", raising=False)
    said = kernelpack("list")
    assert said.code == 1
    assert "`kernelpack list` needs the builder" in said.err
    assert "hint: pip install '.[build]' in a checkout of kernelpack" in said.err


def test_what_the_system_refuses(kernelpack, monkeypatch):
    """What the system refuses is reported as any other error, not as a traceback."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied", "/some/where")

    monkeypatch.setattr(import_module("kernelpack.cli.list"), "load", refuse)
    said = kernelpack("list")
    assert said.code == 1
    assert said.err.startswith("error: /some/where: Permission denied\nhint: name what you may")


def test_no_memory_left(kernelpack, monkeypatch):
    """What numpy cannot allocate is reported as any other error."""

    def refuse(*_):
        raise MemoryError("Unable to allocate 15.3 GiB")

    monkeypatch.setattr(import_module("kernelpack.cli.list"), "load", refuse)
    said = kernelpack("list")
    assert said.code == 1
    assert said.err == (
        "error: this machine has no memory left: Unable to allocate 15.3 GiB\n"
        "hint: give smaller sizes\n"
    )


@pytest.mark.parametrize("words", [["build"], ["merge", "a.kpk", "-o", "b.kpk"], ["ls", "a.kpk"]])
def test_a_removed_working_folder(kernelpack, tmp_path, monkeypatch, words):
    """It is named, with what to do."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    said = kernelpack(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err == "error: the working folder was removed\nhint: cd to a folder that is there\n"


def test_interrupted(kernelpack, monkeypatch):
    """Ctrl-C is one line and exit code 130."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("kernelpack.cli.list"), "load", interrupt)
    said = kernelpack("list")
    assert (said.code, said.out) == (130, "")
    assert said.err.strip() == "interrupted; what was finished is kept"


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        (lambda pid: os.killpg(pid, signal.SIGINT), 130, "interrupted; what was finished is kept"),
        (lambda pid: os.kill(pid, signal.SIGTERM), 143, "asked to end; what was finished is kept"),
    ],
    ids=["SIGINT", "SIGTERM"],
)
def test_interrupted_build(tmp_path, tmp_path_factory, end, code, says):
    """Ctrl-C in a terminal, or a SIGTERM, ends a build with its workers, leaves no file, and is
    the last that is said.
    """
    scratch = tmp_path_factory.mktemp("t")  # a short name: workers have a socket below it
    environment = os.environ | {
        "KERNELPACK_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(scratch),
    }
    output = tmp_path / "out" / "x.kpk"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    some = [str(MANIFESTS / "lora_shrink_qkv.yaml"), "--target", "sm_100a"]
    command = [sys.executable, "-c", PROGRAM, "build", *some, "-o", str(output)]
    with started(command, env=environment, **pipes) as process:
        wait_for((tmp_path / "cache" / "objects").is_dir)
        end(process.pid)
        out, err = process.communicate(timeout=120)
    first, *rest = filter(None, err.splitlines())
    assert (process.returncode, out, rest) == (code, "", [says])
    assert first.startswith("compiling ")
    assert not output.parent.exists()
    assert list(scratch.iterdir()) == []


def test_reader_that_leaves(bundle):
    """`kernelpack info X | head -0`: no traceback when nobody reads what is written."""
    process = start("ls", bundle, "--json")
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 1)
    process.stderr.close()


def test_help_imports_little():
    """Help imports no template engine, no schema, no driver, no numpy, and none of the verbs."""
    code = (
        "import json, sys; from kernelpack.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr))
    assert loaded & set(HEAVY) == set()
    assert [name for name in VERBS if f"kernelpack.cli.{name}" in loaded] == []


def seconds_of(code, *words):
    """Processor seconds of an interpreter: what else the machine does has no part in it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_fast():
    """Help takes less than 0.3 s over a bare interpreter, the best of five."""
    bare = min(seconds_of("pass") for _ in range(5))
    assert min(seconds_of(PROGRAM, "--help") for _ in range(5)) - bare < 0.3


@pytest.mark.parametrize(
    ("words", "offered"),
    [(["doc"], {"plain,doctor"}), (["ls", "--js"], {"plain,--json"}), (["x", "--"], set())],
)
def test_completion(words, offered):
    """A shell gets the verbs, and the options of one."""
    asked = {
        **os.environ,
        "_KERNELPACK_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["kernelpack", *words]),
        "COMP_CWORD": str(len(words)),
    }
    assert offered == set(start(env=asked).communicate()[0].split())


WITHOUT_JSON = {"config"}  # which prints words for a shell


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_speaks_json(name):
    """Whatever a verb prints it prints as JSON too."""
    options = {option for parameter in verb(name).params for option in parameter.opts}
    assert ("--json" in options) == (name not in WITHOUT_JSON)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_an_example(kernelpack, name):
    """The help of a verb ends with a command line, on a line of its own."""
    lines = [line.strip() for line in kernelpack(name, "--help").out.splitlines()]
    examples = lines[lines.index("Examples:") + 1 :]
    assert any(f"kernelpack {name}" in line for line in examples)


@pytest.mark.parametrize("verb_words", [["ls"], ["info"], ["extract", "-o", "x"], ["sign"]])
def test_an_error_as_json(kernelpack, tmp_path, verb_words):
    """With `--json` an error is JSON too, and is reported as always."""
    name, *rest = verb_words
    missing = tmp_path / "none.kpk"
    key = ["--key", missing] if name == "sign" else []
    said = kernelpack(name, missing, *rest, *key, "--json")
    error = json.loads(said.out)["error"]
    assert (said.code, error["where"]) == (1, str(missing))
    assert f"error: {missing}: {error['what']}" in said.err
    assert kernelpack(name, missing, *rest, *key).out == ""


@pytest.mark.parametrize("name", VERBS)
def test_help_has_examples(name):
    """The help of every verb ends with command lines to copy, which begin with the verb."""
    head, *lines = verb(name).epilog.split("\n\n")
    assert head == "Examples:"
    assert all(f"kernelpack {name} " in f"{line} " for line in lines)
