"""Which variant serves a problem, and why each other one does not. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

from kernelpack.errors import BundleError, ProblemError, SelectionError
from kernelpack.spec.arch import Capability
from kernelpack.spec.expr import Word, evaluate
from kernelpack.spec.sides import counted
from kernelpack.spec.tuned import Measured, chosen
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A variant checked against a problem: its cost if it serves, else the reason it does not."""

    variant: Variant
    cost: int | None
    reason: str = ""


def check_asked(kernel: object, abis: object, where: str) -> None:
    """Refuse what names no kernel, or is not a range of ABIs.

    Raises:
        ProblemError: says what it is.

    """
    if not isinstance(kernel, str):
        what = f"a kernel is asked for by its name, not by a {type(kernel).__name__}"
        raise ProblemError(what, where=where)
    if not isinstance(abis, range | None):
        what = f"`abis` must be a range, such as range(1, 2), not {abis!r:.60}"
        raise ProblemError(what, where=kernel)


def of_abi(
    listed: Sequence[Variant], kernel: str, abis: range | None, where: str
) -> tuple[Variant, ...]:
    """Those of a kernel's variants that a caller can call.

    Raises:
        BundleError: there are none; names the ABIs that there are.

    """
    known = tuple(v for v in listed if abis is None or v.abi in abis)
    if not known:
        found = ", ".join(str(abi) for abi in sorted({v.abi for v in listed}))
        called = ", ".join(str(abi) for abi in abis or ()) or "none"
        raise BundleError(
            f"`{kernel}` has kernel ABI {found}, this version calls {called}",
            where=where,
            hint="install the kernelpack version that the bundle was built for",
        )
    return known


def sizes_of(given: Mapping[str, float], variant: Variant) -> dict[str, int]:
    """The sizes of a call, without its numbers, which choose nothing.

    Raises:
        ProblemError: names the size, and its value, or the nearest that there is.

    """
    sizes = [size.name for size in variant.sizes]
    numbers = [number.name for number in variant.numbers]
    for name in given:
        if name not in sizes and name not in numbers:
            hint = f"sizes: {', '.join(sizes)}"
            raise ProblemError(f"no size `{name}`", where=variant.kernel, hint=hint)
    counts = counted([variant])
    return {
        name: _size(name, value, counts=name in counts)
        for name, value in given.items()
        if name not in numbers
    }


def names_of(variants: Iterable[Variant]) -> frozenset[str]:
    """The sizes and numbers that variants have a name for."""
    found = {size.name for variant in variants for size in variant.sizes}
    return frozenset(found.union(n.name for variant in variants for n in variant.numbers))


def _size(name: str, value: object, *, counts: bool) -> int:
    """A size as an integer; a truth is one where no side of an array is of that size."""
    is_truth = isinstance(value, bool) and counts
    if is_truth or not hasattr(value, "__index__"):
        raise ProblemError(f"must be an integer, not {value!r:.60}", where=f"`{name}`")
    try:
        size = index(value)
    except TypeError:  # an array of several elements
        what = f"must be an integer, not a {type(value).__name__}"
        raise ProblemError(what, where=f"`{name}`") from None
    if size < 0:
        raise ProblemError(f"must be at least 0, not {size}", where=f"`{name}`")
    return value if isinstance(value, Word) else int(size)


def judge(variant: Variant, sizes: Mapping[str, float], capability: Capability) -> Verdict:
    """Check one variant against a problem on a device of `capability`, `(major, minor)`."""
    if not variant.arch.runs_on(capability):
        runs = ", ".join(f"{major}.{minor}" for major, minor in variant.arch.capabilities)
        reason = f"{variant.arch} runs on compute capability {runs} only"
        return Verdict(variant=variant, cost=None, reason=reason)
    for guard in variant.guards:
        if not evaluate(guard.when, sizes):
            return Verdict(variant=variant, cost=None, reason=guard.reason)
    return Verdict(variant=variant, cost=evaluate(variant.cost, sizes))


def select(
    variants: Iterable[Variant],
    sizes: Mapping[str, float],
    capability: Capability,
    measured: Sequence[Measured] = (),
) -> Variant:
    """The variant of least cost among those that serve; of equal costs, the first by id.

    Args:
        variants: the candidates.
        sizes: the problem and the device, name → integer.
        capability: the device's.
        measured: times on this device, which choose where they were measured, and between.

    Raises:
        SelectionError: none serves; says the device and every candidate's reason.

    """
    verdicts = [judge(variant, sizes, capability) for variant in variants]
    serving = [v for v in verdicts if v.cost is not None]
    if not serving:
        raise SelectionError(_refusal(verdicts, sizes, capability), hint=_reasons(verdicts))
    least = min(verdict.cost for verdict in serving)  # type: ignore[type-var]
    usual = min((v.variant for v in serving if v.cost == least), key=lambda v: v.id)
    if not measured:
        return usual
    known = {v.variant.id: v.variant for v in serving}
    return known[chosen(measured, sizes, known, usual.id)]


def _refusal(verdicts: list[Verdict], sizes: Mapping[str, float], capability: Capability) -> str:
    problem = ", ".join(f"{name}={value}" for name, value in sizes.items())
    device = f"{capability[0]}.{capability[1]}"
    kernels = sorted({v.variant.kernel for v in verdicts}) or ["any kernel"]
    return (
        f"no variant of {', '.join(kernels)} serves {problem} on compute capability {device} "
        f"({len(verdicts)} candidates)"
    )


def _reasons(verdicts: list[Verdict]) -> str:
    """Each reason once, with the candidates it turned away."""
    lost: dict[str, list[str]] = {}
    for verdict in verdicts:
        lost.setdefault(verdict.reason, []).append(verdict.variant.id)
    lines = [f"{reason}: {', '.join(ids)}" for reason, ids in lost.items()]
    return "why each lost:\n  " + "\n  ".join(lines) if lines else "the bundle holds none"
