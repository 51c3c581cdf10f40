"""Paths through an entry's nodes: which of them lie past another one for good."""

from collections.abc import Iterable, Sequence

from kernelpack.emulator.translate.translate import Code, Node


def behind(code: Code, pc: int) -> frozenset[int]:
    """Nodes that come after the node at `pc`, and from which no path leads back to it.

    Lanes that run one of them will not come to `pc` any more.
    """
    found = code.behind.get(pc)
    if found is None:
        after = [_successors(node, at) for at, node in enumerate(code.nodes)]
        before: list[list[int]] = [[] for _ in after]
        for at, successors in enumerate(after):
            for successor in successors:
                before[successor].append(at)
        found = code.behind[pc] = _reached(after, pc) - _reached(before, pc)
    return found


def _successors(node: Node, at: int) -> tuple[int, ...]:
    """Where a node leads: to the next one, to its targets, to any of them, or nowhere."""
    following = (
        ()
        if node.kind in ("branch", "table", "exit", "return") and node.guard is None
        else (at + 1,)
    )
    if node.kind in ("table", "call", "return"):
        return (*following, *node.targets)
    return (*following, node.target) if node.kind == "branch" else following


def _reached(arrows: Sequence[Iterable[int]], start: int) -> frozenset[int]:
    """The nodes that arrows lead to from one node, itself among them only in a circle."""
    reached: set[int] = set()
    ahead = list(arrows[start])
    while ahead:
        at = ahead.pop()
        if at not in reached:
            reached.add(at)
            ahead += arrows[at]
    return frozenset(reached)
