"""A stand-in for `kernelpack.process.run`: keeps what it was asked, answers what a test sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpack.process import Completed


@dataclass(frozen=True, kw_only=True)
class Call:
    """One command, where it ran, and the text files that were there."""

    command: tuple[str, ...]
    env: Mapping[str, str] | None
    files: Mapping[str, str]


@dataclass(kw_only=True)
class FakeRunner:
    """Answers every command alike; `writes` are files that the command leaves where it ran."""

    returncode: int = 0
    stdout: str = ""
    stderr: str = ""
    writes: Mapping[str, bytes] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def __call__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        assert not stdin, "no compiler here reads standard input"
        files = {}
        if cwd:
            paths = [path for path in cwd.rglob("*") if path.is_file()]
            files = {path.relative_to(cwd).as_posix(): _text(path) for path in paths}
        self.calls.append(Call(command=tuple(command), env=env, files=files))
        for name, data in self.writes.items():
            ((cwd or Path()) / name).write_bytes(data)
        return Completed(
            command=tuple(command),
            returncode=self.returncode,
            stdout=self.stdout,
            stderr=self.stderr,
        )


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="backslashreplace")
