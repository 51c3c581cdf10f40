"""`kernelpack bench --on emulator`: counts of what the chosen variant does."""

from pathlib import Path

from kernelpack.cli import console
from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.kernels.definition import Case, Definition
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.spec.launch import bytes_of
from kernelpack.verify import room
from kernelpack.verify.counts import Counts, by_unit, products_of_warps


def tell(
    path: Path | None,
    arch: str | None,
    tuned: Path | None,
    definition: Definition,
    case: Case,
    *,
    as_json: bool,
) -> int:
    """Run a case on the emulator and print the counts; the exit code.

    Raises:
        SelectionError: no variant serves the case.
        BundleError: the bundle's PTX is missing.
        ProblemError: this machine has no room for the arguments.
        EmulationError: the kernel could not go on.

    """
    library = EmulatedLibrary(path, arch=arch, tuned=tuned)
    found = count(library, definition, case)
    if as_json:
        console.print_json({name.replace(" ", "_"): value for name, value in found.items()})
    else:
        console.print_facts({name: _words(value) for name, value in found.items()})
    return 0


def count(library: EmulatedLibrary, definition: Definition, case: Case) -> dict[str, object]:
    """Facts of a launch by name; none of them is a time."""
    variant = library.select(definition.stem, case.sizes, definition.abis)
    sm_count = library.multiprocessors(variant.arch)
    sizes = {**case.sizes, "sm_count": sm_count}
    room.check_launch(variant, sizes, case.name)
    program, counts = parse(library.ptx(variant).text), Counts()
    called = call(program, variant, sizes, definition.inputs(case), checks=[counts.join])
    called.result.raise_on_error()
    instructions = program.entry(variant.entry).body.instructions
    executions = counts.executions(len(instructions))
    waited_for = products_of_warps(instructions, executions)
    return {
        "device": f"CPU emulator of {variant.arch}, {sm_count} multiprocessors",
        "problem": case.name,
        "variant": variant.id,
        "ctas": called.plan.grid.count,
        "warp instructions": called.result.steps,
        "by unit": by_unit(instructions, executions),
        "bytes moved": {
            f"{who} {did} {where}": size for (who, did, where), size in counts.moved.most_common()
        },
        "operations": dict(counts.operations.most_common()),
        "multiplications of tensor cores": counts.products + waited_for,
        "argument bytes": sum(bytes_of(variant, sizes).values()),
    }


def _words(value: object) -> object:
    """Counts of several things in a line."""
    if not isinstance(value, dict):
        return value
    return ", ".join(f"{name} {number}" for name, number in value.items()) or "none"
