"""How much memory this machine, or this container, has left; and what a process has used."""

import resource
from collections.abc import Iterator
from pathlib import Path

_KIB = 1024
_NO_LIMIT = 1 << 60
"""Version 1 of control groups has a number where there is no limit: the most, in whole pages."""


def available_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can still be taken before something is killed: the least of all limits.

    Args:
        proc: where the kernel describes the machine and this process.
        cgroup: where control groups are mounted; those of version 1 in `memory` below it.

    """
    return min([_free(proc / "meminfo"), *_cgroup_rest(proc / "self" / "cgroup", cgroup)])


def used_bytes() -> int:
    """The most that this process and the largest of its finished children held at once."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(one).ru_maxrss * _KIB for one in who)


def _free(meminfo: Path) -> int:
    fields = dict(line.split(":", 1) for line in meminfo.read_text(encoding="utf-8").splitlines())
    return int(fields["MemAvailable"].split()[0]) * _KIB


def _cgroup_rest(membership: Path, mount: Path) -> Iterator[int]:
    """What each control group above this process leaves, where it sets a limit."""
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _rest(mount, path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _rest(mount / "memory", path, *names)


def _rest(root: Path, path: str, most: str, now: str) -> Iterator[int]:
    """Limits from a group up to the root; of a container, whose path is the host's, the root's."""
    folder = root / path.lstrip("/")
    for group in (folder, *folder.parents):
        limit = _number(group / most) if group.is_relative_to(root) else None
        if limit is not None and limit < _NO_LIMIT:
            yield max(0, limit - (_number(group / now) or 0))


def _number(file: Path) -> int | None:
    """The number in a file; None where there is none, or `max`."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    """A file's text; empty where it is not there, or may not be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
