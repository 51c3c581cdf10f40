"""Run a host program with its kernels on the emulator: the story, from its start to its report."""

import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack import process
from kernelpack.emulate import arena, program, standin
from kernelpack.emulate.options import Options
from kernelpack.emulate.report import Launch, Report
from kernelpack.emulate.server import Server
from kernelpack.errors import KernelpackError

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a memory file system, not a place for secrets
_POLL_SECONDS = 0.05


def emulate(
    command: Sequence[str],
    libraries: Path,
    options: Options,
    tell: Callable[[str], None],
) -> Report:
    """Run a program to its end.

    Args:
        command: the program and its arguments.
        libraries: the folder that `standin.build` returned.
        options: the device it finds, and how its kernels are run.
        tell: is given each launch and each error as it happens, one text.

    Raises:
        UnsupportedError: the program's CUDA runtime cannot be replaced.
        KernelpackError: there is no such program.

    """
    words = [str(_found(command[0])), *command[1:]]
    program.check(Path(words[0]))
    launches: list[Launch] = []
    refused: list[str] = []
    home = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
    with TemporaryDirectory(prefix="kernelpack-", dir=home) as name:
        folder = Path(name)
        with _listening(folder / "wire") as listener:
            environment = _environment(options, libraries, folder / "wire")
            with process.beside(words, env=environment) as running:
                while (connection := _accept(listener, running.poll)) is not None:
                    with connection, arena.shared(folder, options.memory_bytes) as memory:
                        server = Server(memory, options, tell)
                        server.serve(connection)
                        launches += server.launches
                        refused += server.refused
                returncode = running.wait()
    return Report(launches=tuple(launches), refused=tuple(refused), returncode=returncode)


def _found(word: str) -> Path:
    """The file of a program, looked up on PATH as a shell does: a word with a slash is not."""
    path = shutil.which(word)
    if path is None:
        raise KernelpackError("no such program", where=word, hint="is it built, and executable?")
    return Path(path).absolute()  # a `Path` drops the `./` that says not to look it up


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(_POLL_SECONDS)
    return listener


def _environment(options: Options, libraries: Path, wire: Path) -> dict[str, str]:
    """The program's environment, in which the stand-in comes before every other CUDA."""
    given = options.environment
    path = [str(libraries), *filter(None, [given.get("LD_LIBRARY_PATH")])]
    preload = [str(libraries / standin.LIBRARY), *filter(None, [given.get("LD_PRELOAD")])]
    return {
        **given,
        "LD_LIBRARY_PATH": ":".join(path),
        "LD_PRELOAD": ":".join(preload),
        "KERNELPACK_EMULATOR": str(wire),
    }


def _accept(listener: socket.socket, poll: Callable[[], int | None]) -> socket.socket | None:
    """The next program that speaks CUDA; None when the one that was started has ended."""
    while True:
        try:
            return listener.accept()[0]
        except TimeoutError:
            if poll() is not None:
                return None
