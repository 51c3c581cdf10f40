"""One run to do: a variant, a case, the device's size and an interleaving. Values only."""

from dataclasses import dataclass, field

from kernelpack.emulator.faults import Level
from kernelpack.kernels.definition import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run.

    Attributes:
        variant_id: the variant that runs.
        kernel: its stem.
        case: the problem.
        sm_count: multiprocessors of the device; grids and splits depend on it.
        schedule: the interleaving, by a name that the emulator knows.
        seed: of the choices that the interleaving leaves open.
        level: findings above it are not asked for.
        selected: whether selection takes this variant for the case; else it is forced on it.

    """

    variant_id: str
    kernel: str
    case: Case
    sm_count: int
    schedule: str = "lazy"
    seed: int = 0
    level: Level = Level.WARN
    selected: bool = field(default=False, compare=False)

    @property
    def sizes(self) -> dict[str, float]:
        """The problem and the device, as the manifest names them."""
        return {**self.case.sizes, "sm_count": self.sm_count}

    @property
    def words(self) -> str:
        """The run without its variant, for people."""
        seed = f"/{self.seed}" if self.seed else ""
        return f"{self.case.name} sm={self.sm_count} {self.schedule}{seed}"
