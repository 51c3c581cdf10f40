"""`kernelpack predict`: what a launch should cost on a device, told by its own PTX."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import rich_click as click

from kernelpack.cli import choices, complete, console, pictures, predicted
from kernelpack.cli.progress import Watcher, watch
from kernelpack.cli.recorded import Recorded
from kernelpack.cli.run import pairs
from kernelpack.errors import KernelpackError
from kernelpack.kernels.definition import Arrays, Definition
from kernelpack.kernels.registry import known as known_kernels
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.predict import choose
from kernelpack.predict.device import Device, find
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.prediction import predict
from kernelpack.predict.problem import needed_bytes, of_variant, steering
from kernelpack.predict.sample import sample
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import find as find_toolchain
from kernelpack.verify import room
from kernelpack.verify.timeline.problem import check_sizes, plain


@click.command(
    "predict",
    epilog=choices.examples(
        "kernelpack predict kernels.kpk lora_shrink_qkv m=4096 k=7168 n=64 n_active=8",
        "kernelpack predict kernels.kpk lora_shrink_qkv m=64 --device b200 --svg launch.svg",
        "kernelpack predict kernels.kpk lora_shrink_qkv m=64 -k prefill --all",
    ),
)
@click.argument("bundle", type=choices.SomePath(path_type=Path, dir_okay=False))
@click.argument("kernel", shell_complete=complete.kernels)
@click.argument("sizes", nargs=-1, metavar="[NAME=VALUE]...")
@choices.kernels
@choices.keep
@click.option(
    "--device",
    metavar="NAME",
    help="The device, such as h200 or b200; if left out, one of the variants' target.",
)
@choices.warm
@click.option("--all", "all_", is_flag=True, help="Every variant that may serve, fastest first.")
@click.option(
    "-o",
    "--output",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="A trace over nanoseconds, for ui.perfetto.dev.",
)
@pictures.options("nanoseconds")
@choices.as_json
def command(
    bundle: Path,
    kernel: str,
    sizes: tuple[str, ...],
    kernels: tuple[Path, ...],
    keep: str,
    device: str | None,
    warm: bool,
    all_: bool,
    output: Path | None,
    picture: Path | None,
    ctas: int,
    window: str | None,
    as_json: bool,
) -> int:
    """Predict the time of a launch on a device that need not be here.

    A few clusters of the launch run on the CPU emulator, at their real sizes and with no data; what
    they did is replayed in the device's time. Prints the time with a band, what binds, where the
    time of a cluster goes, and what a prediction cannot tell. Sizes are given as `m=4096 k=7168`;
    those left out have defaults. With `--all` each variant that may serve is predicted, fastest
    first. Takes seconds to minutes a variant, and needs ptxas, which the builder brings.
    """
    if all_ and (output or picture):
        raise click.UsageError("-o and --svg show one variant; -k chooses it")
    view = pictures.view(picture, ctas, window)
    choices.check_written(*(path for path in (output, picture) if path), read=[bundle])
    if device is not None:
        find(device)
    wish = _Wish(bundle, known_kernels(kernels).get(kernel), kernel, pairs(sizes))
    variants = choose.kept(wish.library, kernel, keep)
    target = choose.device_of(device, variants)
    predicting = _Predicting(wish, target, is_warm=warm)
    chosen = wish.chosen(variants, target, is_all=all_)
    if all_:
        return _all(predicting, chosen, as_json=as_json)
    console.say(f"recording {chosen[0].id}")
    with watch() as progress:
        progress.begin(1)
        one = predicting.predicted(chosen[0], progress)
    predicted.draw(one, output, view)
    predicted.tell(one, as_json=as_json)
    return 0


def _all(predicting: "_Predicting", variants: Sequence[Variant], *, as_json: bool) -> int:
    """Predict each variant and print a table; the exit code. One that fails stops no other."""
    found: list[predicted.Predicted] = []
    lost: list[KernelpackError] = []
    try:
        with watch() as progress:
            progress.begin(len(variants))
            for variant in variants:
                try:
                    found.append(predicting.predicted(variant, progress))
                    progress.tell(found[-1])
                except KernelpackError as error:
                    where = f"{variant.id}: {error.where}" if error.where else variant.id
                    lost.append(KernelpackError(error.what, where=where, hint=error.hint))
    finally:  # where it is interrupted, what was finished is shown
        predicted.tell_all(found, lost, predicting.device, as_json=as_json)
    return console.exit_code(lost)


class _Wish:
    """A problem of a kernel in a bundle: of one with an oracle by its defaults, else as typed."""

    def __init__(
        self, bundle: Path, definition: Definition | None, kernel: str, given: Mapping[str, str]
    ) -> None:
        self.path, self.definition = bundle, definition
        self.library = EmulatedLibrary(bundle)
        self.case = definition.case(given) if definition else None
        self.plain = None if definition else plain(kernel, given)
        self.name = self.case.name if self.case else ",".join(f"{n}={v}" for n, v in given.items())

    def sizes(self, variant: Variant) -> Mapping[str, float]:
        """The sizes that the kernel knows.

        Raises:
            ProblemError: one is not given, or not known.

        """
        if self.case:
            return self.library.known(variant.kernel, self.case.sizes)
        assert self.plain
        check_sizes(self.plain, variant)
        return self.plain.sizes

    def chosen(
        self, variants: Sequence[Variant], device: Device, *, is_all: bool
    ) -> tuple[Variant, ...]:
        """The variants to predict."""
        abis = self.definition.abis if self.definition else None
        return choose.chosen(variants, device, self.sizes(variants[0]), abis, is_all=is_all)

    def arrays(self, variant: Variant) -> Arrays:
        """What steers a variant."""
        if self.definition is None or self.case is None:
            return {}
        return steering(self.definition, self.case, variant, self.sizes(variant))


class _Predicting:
    """Predicts variants for a device.

    Raises:
        ToolchainError: ptxas is not installed.

    """

    def __init__(self, wish: _Wish, device: Device, *, is_warm: bool) -> None:
        self.wish, self.device, self.is_warm = wish, device, is_warm
        self.toolchain = find_toolchain()
        sm_count = device.multiprocessors
        self.library = EmulatedLibrary(wish.path, arch=device.target, sm_count=sm_count)

    def predicted(self, variant: Variant, progress: Watcher) -> predicted.Predicted:
        """A variant's prediction; `progress` hears how far it is.

        Raises:
            ProblemError: this machine has no room for the launch.
            KernelpackError: the emulator cannot run it, or its replay stands still.

        """
        watch = Recorded(lambda what: progress.at(f"{variant.id}: {what}"))
        launch = replace(self._launch(variant), watch=watch)
        kept = sample(launch, self.toolchain)
        progress.at(f"{variant.id}: replay")
        return predicted.Predicted(
            variant=variant,
            problem=self.wish.name,
            sample=kept,
            text=launch.program.text,
            is_steered=self.wish.definition is not None,
            prediction=predict(kept, self.device, is_warm=self.is_warm),
        )

    def _launch(self, variant: Variant) -> Prepared:
        """The launch, if there is room for it."""
        sizes = self.wish.sizes(variant)
        known = {**sizes, "sm_count": self.device.multiprocessors}
        room.check(needed_bytes(self.wish.definition, variant, known), self.wish.name)
        return of_variant(self.library, variant, sizes, self.wish.arrays(variant))
