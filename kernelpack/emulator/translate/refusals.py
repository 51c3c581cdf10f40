"""Every form of instruction of an entry that is not modelled, found without running it.

Code is generated when it is first reached, so that a run names the first form that it meets. What
else would stop it is asked here, of the table of instructions alone.
"""

from dataclasses import dataclass

from kernelpack.emulator.faults import PtxError, UnsupportedError
from kernelpack.emulator.ptx.parser import Entry
from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.emulator.semantics import families
from kernelpack.emulator.translate.fits import STUMBLES, check_operands, check_target
from kernelpack.emulator.translate.translate import kind_of


@dataclass(slots=True)
class Refused:
    """A form that is not modelled, how often it is there, and where first."""

    form: str
    place: str
    count: int = 1

    def __str__(self) -> str:
        often = f" ({self.count} times)" if self.count > 1 else ""
        return f"`{self.form}`{often} at {self.place}"


def of_entry(entry: Entry) -> tuple[Refused, ...]:
    """The forms that are not modelled, in order; those of functions that it calls, too."""
    found: dict[str, Refused] = {}
    fine: set[str] = set()
    for instruction in entry.body.instructions:
        form = ".".join((instruction.opcode, *instruction.modifiers))
        if form in found:
            found[form].count += 1
        elif form not in fine and kind_of(entry.body, instruction) == "control":
            if _is_modelled(instruction, entry.target):
                fine.add(form)
            else:
                found[form] = Refused(form, instruction.place)
    return tuple(found.values())


def _is_modelled(instruction: Instruction, target: str) -> bool:
    """Whether it has a handler; what no assembler takes is not for us to judge."""
    try:
        check_target(instruction, target)
        op = families.find(instruction)
        form = op.form(instruction)
        check_operands(op, form, op.words(form))
        op.build(form)
    except UnsupportedError:
        return False
    except (PtxError, *STUMBLES):
        return True
    return True
