"""Which variants a request is about: manifests → variants, less those that `-k` leaves out."""

from collections.abc import Collection

from kernelpack.build.options import Options
from kernelpack.build.steps import Steps
from kernelpack.errors import KernelpackError
from kernelpack.spec.filter import filtered, parse_filter
from kernelpack.spec.variant import Variant


def choose(options: Options, steps: Steps) -> tuple[Variant, ...]:
    """The variants, in the order of the manifests.

    Raises:
        ManifestError: a manifest does not hold together.
        KernelpackError: no variant is left.

    """
    parse_filter(options.keep)  # report a mistake in it before one in a manifest
    manifests = [steps.load(path) for path in options.manifests]
    expanded = [v for manifest in manifests for v in steps.expand(manifest, options.targets)]
    if not expanded:
        raise _nothing(options, {str(arch) for manifest in manifests for arch in manifest.targets})
    return tuple(filtered(expanded, options.keep))


def _nothing(options: Options, known: Collection[str]) -> KernelpackError:
    targets = ", ".join(map(str, options.targets or ())) or "any target"
    manifests = ", ".join(map(str, options.manifests)) or "no manifest"
    return KernelpackError(
        f"there is no variant for {targets}",
        where=manifests,
        hint=f"targets of the manifests: {', '.join(sorted(known)) or 'none'}",
    )
