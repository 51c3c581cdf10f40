"""A problem of a kernel at its real size: what a person types → a launch, and no data made."""

from collections.abc import Mapping

from kernelpack.kernels.definition import Arrays, Case, Definition
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.predict.inputs import Prepared, prepared, steers
from kernelpack.spec.launch import bytes_of, is_absent
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.variant import Variant


def of_case(library: EmulatedLibrary, definition: Definition, case: Case) -> Prepared:
    """The launch of the variant that selection takes for a case.

    Raises:
        SelectionError: no variant serves the case.
        BundleError: the bundle's PTX is missing.
        ProblemError: the launch exceeds a limit.

    """
    sizes = library.known(definition.stem, case.sizes)
    variant = library.select(definition.stem, sizes, definition.abis)
    return of_variant(library, variant, sizes, steering(definition, case, variant, sizes))


def of_variant(
    library: EmulatedLibrary, variant: Variant, sizes: Mapping[str, float], arrays: Arrays
) -> Prepared:
    """The launch of a variant; `arrays` are those that steer it, and zero where left out.

    Raises:
        BundleError: the bundle's PTX is missing.
        ProblemError: the launch exceeds a limit.

    """
    known = {**sizes, "sm_count": library.multiprocessors(variant.arch)}
    return prepared(library.program(variant), variant, known, arrays)


def steering(
    definition: Definition, case: Case, variant: Variant, sizes: Mapping[str, float]
) -> Arrays:
    """The arrays of a case that say where data lies; nothing where the variant reads none."""
    if definition.steering is not None:
        return definition.steering(case)
    return definition.inputs(case) if _is_steered(variant, sizes) else {}


_MAKING = 4
"""Times that bytes of a made array are held: emulated, the caller's, and in 64 bits at first."""


def needed_bytes(
    definition: Definition | None, variant: Variant, sizes: Mapping[str, float]
) -> int:
    """Bytes of this machine that `steering` and `of_variant` take together, about.

    An array that nobody makes has no bytes yet, but each of these has a state.
    """
    present = bytes_of(variant, sizes)
    read = [a for a in variant.arguments if a.name in present and a.access is not Access.WRITE]
    made: list[Argument] = []
    if definition and _is_steered(variant, sizes):
        made = read if definition.steering is None else [a for a in read if steers(a)]
    return sum(present.values()) + _MAKING * sum(present[a.name] for a in made)


def _is_steered(variant: Variant, sizes: Mapping[str, float]) -> bool:
    """Whether a variant reads an array that says where data lies."""
    return any(
        steers(argument) and not is_absent(argument, sizes)
        for argument in variant.arguments
        if argument.access is not Access.WRITE
    )
