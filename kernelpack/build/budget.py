"""Check what a compiled variant uses, and its parameters' layout, against its manifest."""

from collections.abc import Iterator

from kernelpack.errors import BudgetError
from kernelpack.spec.artifact import Resources
from kernelpack.spec.variant import Variant


def check_resources(variant: Variant, resources: Resources) -> None:
    """Every claim at once, so that one build reports all there is to mend.

    Raises:
        BudgetError: names the variant, and each claim that does not hold.

    """
    broken = [*_identity(variant, resources), *_signature(variant, resources)]
    broken += _excess(variant, resources)
    if broken:
        raise BudgetError(
            "; ".join(broken),
            where=variant.id,
            hint="change the template, or the manifest's `budget` and `params`",
        )


def _identity(variant: Variant, resources: Resources) -> Iterator[str]:
    if resources.entry != variant.entry:
        yield f"the entry is `{resources.entry}`, not `{variant.entry}`"
    if resources.target != variant.arch.name:
        yield f"the machine code is for {resources.target}, not {variant.arch}"


def _signature(variant: Variant, resources: Resources) -> Iterator[str]:
    expected = variant.slots
    if len(expected) != len(resources.slots):
        yield f"the kernel takes {len(resources.slots)} parameters, not {len(expected)}"
        return
    for param, slot, found in zip(variant.params, expected, resources.slots, strict=True):
        if slot != found:
            yield (
                f"parameter `{param.name}` is {found.size} bytes at offset {found.offset}, "
                f"not {slot.size} at {slot.offset}"
            )


def _excess(variant: Variant, resources: Resources) -> Iterator[str]:
    budget = variant.budget
    if resources.spill_bytes:
        yield f"spills {resources.spill_bytes} bytes a thread"
    if resources.registers > budget.registers:
        yield f"uses {resources.registers} registers a thread, more than {budget.registers}"
    shared = resources.shared_bytes + (variant.launch.shared_bytes.constant or 0)
    if shared > budget.shared_bytes:
        yield f"uses {shared} bytes of shared memory, more than {budget.shared_bytes}"
