"""How much memory this machine, or this container, has left; and what a process has used."""

import resource
from pathlib import Path

_KIB = 1024


def available_bytes(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can still be taken before something is killed: the least of all limits.

    Args:
        proc: where the kernel tells of the machine and of this process.
        cgroup: where control groups (version 2) are mounted.

    """
    return min([_free(proc / "meminfo"), *_cgroup_rest(proc / "self" / "cgroup", cgroup)])


def used_bytes() -> int:
    """The most that this process and the largest of its finished children held at once."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(one).ru_maxrss * _KIB for one in who)


def _free(meminfo: Path) -> int:
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * _KIB


def _cgroup_rest(membership: Path, mount: Path) -> list[int]:
    """What each control group above this process leaves, where it sets a limit."""
    if not membership.exists():
        return []
    own = [line[4:] for line in membership.read_text().splitlines() if line.startswith("0::/")]
    folders = [folder for path in own for folder in ((mount / path), *(mount / path).parents)]
    limited = [f for f in folders if _limit(f) and f.is_relative_to(mount)]
    return [int(_limit(f)) - int((f / "memory.current").read_text()) for f in limited]


def _limit(folder: Path) -> str:
    """The group's limit in bytes as text; empty where it has none."""
    file = folder / "memory.max"
    text = file.read_text().strip() if file.exists() else "max"
    return "" if text == "max" else text
