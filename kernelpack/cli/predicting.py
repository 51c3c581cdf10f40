"""`kernelpack emulate --predict`: each launch of a program is predicted.

Only the few clusters that are recorded run, so the program's results are not those of a run.
"""

from kernelpack.cli import console
from kernelpack.cli.predicted import in_words
from kernelpack.emulate import devices, options
from kernelpack.emulate.names import readable, shorten
from kernelpack.predict.device import find
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.prediction import predict
from kernelpack.predict.programs import shown_to
from kernelpack.predict.sample import sample
from kernelpack.spec.arch import Arch
from kernelpack.toolchain.locate import find as find_toolchain


def found_by_program(name: str) -> devices.Device:
    """The device that a program finds where times of another one are asked for.

    Raises:
        KernelpackError: that one is not known.

    """
    device = find(name)
    capabilities = Arch(device.target).capabilities
    same = (one for one in devices.DEVICES.values() if one.capability in capabilities)
    return next(same).with_multiprocessors(device.multiprocessors)


def runner(name: str) -> options.Run:
    """What is asked in place of the emulator: it says a launch's time.

    Raises:
        KernelpackError: the device is not known.
        ToolchainError: ptxas is not installed.

    """
    device, toolchain = find(name), find_toolchain()

    def each(launch: Prepared) -> None:
        found = predict(sample(launch, toolchain), device)
        path = "; ".join(map(str, found.shares[:2]))
        entry = shorten(readable(launch.plan.entry))
        console.say(f"{entry} on {device.title}: {in_words(found)}. {path}")

    return shown_to(each)
