"""Which variants a request is about: manifests → variants, less those that `-k` leaves out."""

from collections.abc import Sequence

from kernelpack.build.keep import parse_keep
from kernelpack.build.options import Options
from kernelpack.build.steps import Steps
from kernelpack.errors import KernelpackError
from kernelpack.spec.variant import Variant


def choose(options: Options, steps: Steps) -> tuple[Variant, ...]:
    """The variants, in the order of the manifests.

    Raises:
        ManifestError: a manifest does not hold together.
        KernelpackError: no variant is left.

    """
    keeps = parse_keep(options.keep)
    manifests = [steps.load(path) for path in options.manifests]
    expanded = [v for manifest in manifests for v in steps.expand(manifest, options.targets)]
    kept = tuple(variant for variant in expanded if keeps(variant.id))
    if not kept:
        raise _nothing(options, expanded)
    return kept


def _nothing(options: Options, expanded: Sequence[Variant]) -> KernelpackError:
    if expanded:
        return KernelpackError(
            f"none of {len(expanded)} variants is kept",
            where=f"-k {options.keep!r}",
            hint=f"ids are like {expanded[0].id}",
        )
    targets = ", ".join(map(str, options.targets or ())) or "any target"
    manifests = ", ".join(map(str, options.manifests)) or "no manifest"
    return KernelpackError(f"there is no variant for {targets}", where=manifests)
