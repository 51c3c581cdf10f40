"""Run a host program with its kernels on the emulator: the story, from its start to its report."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack import process
from kernelpack.emulate import program, standin, wire
from kernelpack.emulate.options import Options
from kernelpack.emulate.report import Log, Report
from kernelpack.errors import KernelpackError


def emulate(
    command: Sequence[str],
    libraries: Path,
    options: Options,
    tell: Callable[[str], None],
    log: Log | None = None,
) -> Report:
    """Run a program to its end.

    Args:
        command: the program and its arguments.
        libraries: the folder that `standin.build` returned.
        options: the device it finds, and how its kernels are run.
        tell: is given each launch and each error as it happens, one text.
        log: is filled as it goes, for whoever may be interrupted.

    Raises:
        UnsupportedError: the program's CUDA runtime cannot be replaced.
        ToolchainError: the stand-in is not what was made.
        KernelpackError: there is no such program.

    """
    words = [str(_found(command[0])), *command[1:]]
    program.check(Path(words[0]))
    standin.check(libraries)
    log = Log() if log is None else log
    with TemporaryDirectory(prefix="kernelpack-", dir=process.folder_of_sockets()) as name:
        path = Path(name) / "wire"
        with (
            wire.listening(path) as listener,
            process.beside(words, env=_environment(options, libraries, path)) as running,
        ):
            wire.serve(listener, lambda: running.poll() is not None, options, tell, log)
            returncode = running.wait()
    return log.report(tuple(options.missed(log.launches)), returncode)


def _found(word: str) -> Path:
    """The file of a program, looked up on PATH as a shell does: a word with a slash is not."""
    path = shutil.which(word)
    if path is None:
        raise KernelpackError("no such program", where=word, hint="is it built, and executable?")
    return Path(path).absolute()  # a `Path` drops the `./` that says not to look it up


def _environment(options: Options, libraries: Path, path: Path) -> dict[str, str]:
    """The program's environment, in which the stand-in comes before every other CUDA."""
    given = options.environment
    folders = [str(libraries), *filter(None, [given.get("LD_LIBRARY_PATH")])]
    preload = [str(libraries / standin.LIBRARY), *filter(None, [given.get("LD_PRELOAD")])]
    return {
        **given,
        "LD_LIBRARY_PATH": ":".join(folders),
        "LD_PRELOAD": ":".join(preload),
        "KERNELPACK_EMULATOR": str(path),
    }
