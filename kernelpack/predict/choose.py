"""Which variants a prediction is about, and for which device."""

from collections.abc import Iterable, Mapping, Sequence

from kernelpack.errors import KernelpackError, SelectionError
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.predict.device import Device, devices, find, listed
from kernelpack.spec.arch import Arch, preferred
from kernelpack.spec.filter import filtered
from kernelpack.spec.nearest import nearest
from kernelpack.spec.select import judge, of_abi, select, sizes_of
from kernelpack.spec.variant import Variant


def kept(library: EmulatedLibrary, kernel: str, keep: str) -> tuple[Variant, ...]:
    """The variants of a kernel that an expression keeps, for any target.

    Raises:
        SelectionError: there are none.

    """
    found = tuple(filtered(library.bundle.variants(kernel), keep))
    if not found:
        stems = {variant.kernel for variant in library.bundle.variants(None)}
        raise SelectionError(
            f"the bundle holds no `{kernel}`",
            where=library.bundle.where,
            hint=nearest(kernel, stems) or "`kernelpack ls` shows what it holds",
        )
    return found


def device_of(name: str | None, variants: Iterable[Variant]) -> Device:
    """The device that is asked for; else the one of the variants' target.

    Raises:
        KernelpackError: it is not known, or none of the variants is for it.

    """
    targets = {variant.arch.name for variant in variants}
    known = devices().values()
    if name is not None:
        device = find(name)
        if device.target not in targets:
            has = ", ".join(sorted(targets))
            what = f"{device.title} runs {device.target}, and the variants are for {has}"
            raise KernelpackError(what, where="--device", hint=f"devices: {listed()}")
        return device
    served = [device.target for device in known if device.target in targets]
    if not served:
        what = f"no device is known for {', '.join(sorted(targets))}"
        raise KernelpackError(what, hint=f"devices: {listed()}")
    target = preferred(map(Arch, served)).name
    return next(device for device in known if device.target == target)


def chosen(
    variants: Sequence[Variant],
    device: Device,
    sizes: Mapping[str, float],
    abis: range | None,
    *,
    is_all: bool,
) -> tuple[Variant, ...]:
    """The variant that selection takes on a device, or all that serve.

    Raises:
        SelectionError: none serves the problem.
        BundleError: the bundle has the kernel in other ABIs only.

    """
    arch = Arch(device.target)
    fitting = [variant for variant in variants if variant.arch == arch]
    listed = of_abi(fitting, fitting[0].kernel, abis, "the bundle")
    known = {**sizes_of(sizes, listed[0]), "sm_count": device.multiprocessors}
    best = select(listed, known, arch.capabilities[0])
    if not is_all:
        return (best,)
    verdicts = (judge(variant, known, arch.capabilities[0]) for variant in listed)
    return tuple(verdict.variant for verdict in verdicts if verdict.cost is not None)
