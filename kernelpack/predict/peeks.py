"""Waits whose outcome is looked at later: a peek delays nobody until then.

A producer or consumer of a pipeline may ask for the next stage with `mbarrier.try_wait`, go on with
this one, and branch on the answer when it comes to the next. The emulator's warp waits where it
asks. On hardware a warp that gets no for an answer goes on, so a wait belongs to the branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kernelpack.emulator.ptx.named import register_indices
from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.predict.blocks import registers
from kernelpack.predict.recording import Await, Recording, Step, Track

_ASKS = ("try_wait", "test_wait")


def settled(recording: Recording, instructions: Sequence[Instruction]) -> Recording:
    """A recording whose waits stand where their outcome is used.

    Args:
        recording: of a launch of the entry.
        instructions: the entry's body.

    """
    tracks = {agent: _track(track, instructions) for agent, track in recording.tracks.items()}
    return replace(recording, tracks=tracks)


def _track(track: Track, instructions: Sequence[Instruction]) -> Track:
    open_ = _Open(instructions)
    steps = [open_.through(step) for step in track.steps]
    return replace(track, steps=steps)


@dataclass(slots=True)
class _Open:
    """The answers that a warp has not used yet: register → what it waits for."""

    instructions: Sequence[Instruction]
    answers: dict[int, tuple[Await, ...]] = field(default_factory=dict)

    def through(self, step: Step) -> Step:
        """A step with the waits that it uses, and without those that it only asks for."""
        last = self.instructions[step.first + step.count - 1]
        asks = bool(step.awaits) and last.opcode == "mbarrier" and last.modifiers[0] in _ASKS
        used = self._used(step) if self.answers else ()
        if not (asks or used):
            return step
        awaits = used if asks else (*used, *step.awaits)
        if asks:
            self.answers.update(dict.fromkeys(register_indices(last.operands[0]), step.awaits))
        return replace(step, awaits=awaits)

    def _used(self, step: Step) -> tuple[Await, ...]:
        """The waits on whose answers a step branches."""
        found: list[Await] = []
        for one in self.instructions[step.first : step.first + step.count]:
            guard = self.answers.get(one.guard.register.index) if one.guard else None
            if guard:
                found += guard
                self._forget(guard)
            elif self.answers:
                self._pass_on(one)
        return tuple(found)

    def _forget(self, awaits: tuple[Await, ...]) -> None:
        kept = {i: [a for a in of if a not in awaits] for i, of in self.answers.items()}
        self.answers = {i: tuple(of) for i, of in kept.items() if of}

    def _pass_on(self, one: Instruction) -> None:
        """What is made of an answer is one."""
        sources, targets = registers(one)
        made = tuple(await_ for index in sources for await_ in self.answers.get(index, ()))
        for index in targets:
            if made:
                self.answers[index] = made
            else:
                self.answers.pop(index, None)
