"""Manifest → variants: the product of its targets and axes, less what `where` excludes.

Pure and ordered: by target as given, then by the axes, the last one fastest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from kernelpack.errors import ExpressionError, ManifestError
from kernelpack.manifest.budgets import check_budgets
from kernelpack.manifest.combination import Combination
from kernelpack.manifest.family import of_family
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.specialise import specialise
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import evaluate
from kernelpack.spec.variant import Axis, Variant

__all__ = ["Exclusion", "check_budgets", "excluded", "expand"]

MAX_COMBINATIONS = 100_000
MAX_VARIANTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A combination that is not built, and why."""

    kernel: str
    arch: Arch
    axes: tuple[Axis, ...]
    reason: str


def expand(manifest: Manifest, targets: Sequence[Arch] | None = None) -> tuple[Variant, ...]:
    """The variants of a manifest.

    Args:
        manifest: what `schema.load` returned.
        targets: build for these only; those that are not a target of the manifest are passed over.

    Raises:
        ManifestError: too many, none at all, or a constant without a value; says where.

    """
    kept = [c for c in _combinations(manifest, targets) if _reason(c) is None]
    if len(kept) > MAX_VARIANTS:
        raise _too_many(manifest, f"makes {len(kept)} variants, more than {MAX_VARIANTS}")
    for arch in _targets(manifest, targets):
        if all(c.arch != arch for c in kept):
            what = f"`where` excludes every combination for {arch}"
            where = of_family(manifest, arch.family).at("where")
            raise ManifestError(what, where=where, hint="see `list --explain`")
    return tuple(specialise(combination) for combination in kept)


def excluded(manifest: Manifest, targets: Sequence[Arch] | None = None) -> tuple[Exclusion, ...]:
    """The combinations that `where` excludes, each with the first reason; errors as of `expand`."""
    return tuple(
        Exclusion(kernel=manifest.kernel, arch=c.arch, axes=c.axes, reason=reason)
        for c in _combinations(manifest, targets)
        if (reason := _reason(c)) is not None
    )


def _targets(manifest: Manifest, targets: Sequence[Arch] | None) -> list[Arch]:
    wanted = manifest.targets if targets is None else targets
    return [arch for arch in wanted if arch in manifest.targets]


def _combinations(manifest: Manifest, targets: Sequence[Arch] | None) -> Iterator[Combination]:
    wanted = _targets(manifest, targets)
    count = prod(map(len, manifest.axes.values())) * len(wanted)
    if count > MAX_COMBINATIONS:
        raise _too_many(manifest, f"has {count} combinations, more than {MAX_COMBINATIONS}")
    families = {name: of_family(manifest, name) for name in {arch.family for arch in wanted}}
    for arch, values in product(wanted, product(*manifest.axes.values())):
        axes = tuple(zip(manifest.axes, values, strict=True))
        yield Combination(families[arch.family], arch, axes)


def _too_many(manifest: Manifest, what: str) -> ManifestError:
    name = max(manifest.axes, key=lambda axis: len(manifest.axes[axis]))
    hint = f"axis `{name}` alone multiplies by {len(manifest.axes[name])}"
    return ManifestError(
        f"the manifest {what}", where=manifest.at("axes", name, key=True), hint=hint
    )


def _reason(combination: Combination) -> str | None:
    """Why a combination is excluded; None if it is not."""
    manifest = combination.manifest
    for index, claim in enumerate(manifest.where):
        try:
            if not evaluate(claim.when, combination):
                return claim.reason
        except ExpressionError as error:
            where = manifest.at("where", index, "when")
            what = f"has no value for {combination}: {error.what}"
            raise ManifestError(what, where=where, hint=error.hint) from error
    return None
