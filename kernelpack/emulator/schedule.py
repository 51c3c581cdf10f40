"""Interleavings: which warp runs next, and when asynchronous operations take effect.

A kernel must give the same numbers under every schedule. `eager` lets operations take effect when
they are issued, `fair` soon after, `lazy` as late as possible; `starving` holds one warp back. What
is late moves only when every warp that may run is at rest (see `rest`). A deadlock is certain where
no warp can run, nothing is in flight, no cluster waits for a place, a spurious wake-up of every
`try_wait` changed nothing, and who still runs goes in circles; who only polls is given a long time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernelpack.emulator.faults import Fault
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.spec.nearest import nearest

OF_ONE = ("eager", "fair", "lazy", "starving:RANK:WARP")
"""Schedules of a launch by itself, as a person writes them."""
NAMES = (*OF_ONE, "overlapping")
MAX_DIGITS = 9
"""Digits of a rank or a warp at most; there are 16 and 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One way to interleave. `held` is the (CTA rank, warp) that is kept back, if any."""

    name: str = "eager"
    tempo: Tempo = Tempo.EAGER
    seed: int = 0
    held: tuple[int, int] | None = None
    resident: int = 1
    """Clusters that run at the same time, as long as nobody waits for another one."""
    launches: int = 1
    """How often the kernel is launched, each as a dependent of the one before."""

    @classmethod
    def parse(cls, name: str, seed: int = 0, known: Sequence[str] = NAMES) -> "Schedule":
        """`eager`, `fair`, `lazy`, `starving:RANK:WARP`, or `overlapping`.

        The last launches the kernel twice, the second as a programmatic dependent of the first:
        it begins as early as `griddepcontrol` lets it, and what it reads before its wait races.
        `known` are those that an error names: the ones that the caller can run.

        Raises:
            Fault: no such schedule.
        """
        head, _, rest = name.partition(":")
        tempo = {"eager": Tempo.EAGER, "fair": Tempo.FAIR, "lazy": Tempo.LAZY}.get(head)
        if tempo is not None and not rest:
            return cls(name=name, tempo=tempo, seed=seed, resident=2 if head == "lazy" else 1)
        if name == "overlapping":
            return cls(name=name, tempo=Tempo.LAZY, seed=seed, resident=2, launches=2)
        parts = rest.split(":")
        if head == "starving" and len(parts) == 2 and all(map(_is_number, parts)):
            held = (int(parts[0]), int(parts[1]))
            return cls(name=name, tempo=Tempo.LAZY, seed=seed, held=held)
        hint = nearest(name, known)
        listed = f"schedules: {', '.join(known)}"
        raise Fault(f"no schedule `{name[:60]}`", hint=f"{hint} {listed}" if hint else listed)

    def check(self, cluster: int, warps: int) -> None:
        """Refuse to hold back a warp that a launch does not have; it would be `lazy` by that name.

        Args:
            cluster: CTAs of a cluster.
            warps: of a CTA.

        Raises:
            Fault: says which warps there are.

        """
        if self.held and not (self.held[0] < cluster and self.held[1] < warps):
            raise Fault(
                f"there is no warp to hold back for `{self.name}`",
                hint=f"CTA ranks are 0 to {cluster - 1} here, warps 0 to {warps - 1}",
            )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def schedules(cluster: int, warps: int, seed: int = 0) -> Iterator[Schedule]:
    """Every schedule of a launch: eager, fair, lazy, and each warp held back in turn."""
    for name in ("eager", "fair", "lazy"):
        yield Schedule.parse(name, seed)
    for rank in range(cluster):
        for warp in range(warps):
            yield replace(Schedule.parse(f"starving:{rank}:{warp}"), seed=seed)
