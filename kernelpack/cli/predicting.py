"""`kernelpack emulate --predict`: each launch of a program is predicted.

Only the few clusters that are recorded run, so the program's results are not those of a run.
"""

import rich_click as click
from click.core import ParameterSource

from kernelpack.cli import console
from kernelpack.cli.predicted import cannot_tell, in_words, numbers
from kernelpack.emulate import devices, options
from kernelpack.emulate.names import readable, shorten
from kernelpack.predict.device import find
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.limits import not_told
from kernelpack.predict.prediction import predict
from kernelpack.predict.programs import shown_to
from kernelpack.predict.sample import sample
from kernelpack.spec.arch import Arch
from kernelpack.toolchain.locate import find as find_toolchain

_OF_RUNS = ("device", "schedule", "seed", "level")
"""Options about how launches run, or on what, which a prediction does not ask."""


def asked(name: str | None, *, is_warm: bool) -> "Predicting | None":
    """What predicts for a device, if one is named; `is_warm` as of `predict`.

    Raises:
        KernelpackError: the device is not known.
        ToolchainError: ptxas is not installed.
        UsageError: an option has no meaning beside `--predict`, or without it.

    """
    context = click.get_current_context()
    assert context
    if name is None:
        if is_warm:
            raise click.UsageError("--warm is about --predict", context)
        return None
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in _OF_RUNS and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} says nothing to --predict", context)
    return Predicting(name, is_warm=is_warm)


class Predicting:
    """Predicts the launches of a program, and keeps what it found for the report.

    Args:
        name: the device.
        is_warm: as of `predict`.

    Raises:
        KernelpackError: the device is not known.
        ToolchainError: ptxas is not installed.

    """

    def __init__(self, name: str, *, is_warm: bool = False) -> None:
        self.device, self.toolchain, self.is_warm = find(name), find_toolchain(), is_warm
        self.found: list[dict[str, object]] = []

    @property
    def found_by_program(self) -> devices.Device:
        """The device that the program finds: one of the same target, and as large."""
        capabilities = Arch(self.device.target).capabilities
        same = (one for one in devices.DEVICES.values() if one.capability in capabilities)
        return next(same).with_multiprocessors(self.device.multiprocessors)

    @property
    def run(self) -> options.Run:
        """What is asked in place of the emulator."""
        return shown_to(self._each)

    def _each(self, launch: Prepared) -> int:
        """Say a launch's time; the warp instructions that ran for it."""
        kept = sample(launch, self.toolchain)
        found, entry = predict(kept, self.device, is_warm=self.is_warm), launch.plan.entry
        self.found.append({"kernel": entry, "name": readable(entry), **numbers(found, kept.plan)})
        path = "; ".join(map(str, found.shares[:2]))
        name = shorten(readable(entry))
        console.say(f"{name} on {self.device.title}: {in_words(found)}. {path}")
        return sum(one.all_steps for one in kept.recordings)

    def record(self) -> dict[str, object]:
        """The predictions for programs."""
        return {"predictions": self.found, "not_told": list(not_told(self.device))}

    def conclude(self) -> None:
        """Say what the predictions leave open."""
        if self.found:
            console.say("only a few clusters of what was predicted ran: the results are not right")
            for line in cannot_tell(not_told(self.device)):
                console.say(line)
