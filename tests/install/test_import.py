"""`import kernelpack`: what it loads, what it costs, what it touches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_LOADED = {
    *("jinja2", "yaml", "ruamel", "ruamel.yaml", "pydantic", "filelock", "platformdirs"),
    *("click", "rich", "rich_click", "cuda", "numpy", "ml_dtypes", "zstandard", "elftools"),
}
PUBLIC = ("Library", "load", "kv", "ops", "__version__")
TELL_MODULES = "import json, sys; {}; print(json.dumps(sorted(sys.modules)))"
BEST_OF = 7
TIMED = """
import time
before = time.process_time()
import kernelpack
print(time.process_time() - before)
"""


def python(code, **options):
    """Run code in an interpreter of its own; its output."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT, **options)
    return done.stdout.decode()


def loaded(statement, **options):
    return set(json.loads(python(TELL_MODULES.format(statement), **options)))


def test_loads_nothing():
    """Importing the package imports no dependency, and of kernelpack itself one module."""
    modules = loaded("import kernelpack")
    assert modules & NOT_LOADED == set()
    assert {name for name in modules if name.startswith("kernelpack")} == {"kernelpack"}


def test_ops_load_no_builder():
    """What a serving host calls needs nothing of the builder and no command line."""
    modules = loaded("import kernelpack; kernelpack.load; kernelpack.ops")
    builder = {"jinja2", "ruamel.yaml", "pydantic", "filelock", "platformdirs", "click", "rich"}
    assert modules & builder == set()


@pytest.mark.parametrize("verb", ["verify", "bench", "tune", "run"])
def test_verbs_on_a_gpu_load_no_builder(verb):
    """A bundle is proven, timed and run with the light runtime alone."""
    modules = loaded(f"import kernelpack.cli.{verb}")
    assert modules & {"jinja2", "ruamel.yaml", "pydantic"} == set()


def test_loading_code_touches_no_driver():
    """Nothing of CUDA is imported before a program connects, not even by ops."""
    modules = loaded("import kernelpack; kernelpack.load; kernelpack.ops")
    assert {name for name in modules if name == "cuda" or name.startswith("cuda.")} == set()


def test_costs_little():
    """Importing takes less than 0.1 s of the processor, the best of several interpreters."""
    assert min(float(python(TIMED)) for _ in range(BEST_OF)) < 0.1


def test_maps_no_libcuda():
    """No part of CUDA is in the process afterwards."""
    maps = python("import kernelpack, kernelpack.ops; print(open('/proc/self/maps').read())")
    assert "libcuda" not in maps
    assert "libnvrtc" not in maps


def test_writes_nothing(tmp_path):
    """Importing works in a read-only home, and leaves no file behind."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    environment = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    python("import kernelpack; kernelpack.load; kernelpack.ops", env=environment)
    assert list(home.rglob("*")) == []


def test_opens_no_file_to_write():
    """No file is opened for writing while the package and its ops are imported."""
    watch = (
        "import os, sys\n"
        "flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT\n"
        "def hook(event, arguments):\n"
        "    if event == 'open' and arguments[2] & flags: print(arguments[0])\n"
        "sys.dont_write_bytecode = True\n"
        "sys.addaudithook(hook)\n"
        "import kernelpack; kernelpack.load; kernelpack.ops\n"
    )
    assert python(watch) == ""


def test_needs_no_home():
    """A process without HOME, as under a service manager, imports it all the same."""
    environment = {k: v for k, v in os.environ.items() if k != "HOME"}
    assert python("import kernelpack; print(kernelpack.__version__)", env=environment).strip()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    """Each public name is there when it is asked for, and dir() lists it."""
    statement = f"import kernelpack; assert kernelpack.{name} and {name!r} in dir(kernelpack)"
    python(statement)


def test_unknown_name():
    """A wrong name is an AttributeError, as of any module."""
    python(
        "import kernelpack\n"
        "try: kernelpack.laod\n"
        "except AttributeError as error: assert \"no attribute 'laod'\" in str(error)\n"
        "else: raise SystemExit(1)"
    )
