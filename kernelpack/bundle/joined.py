"""Several bundles as one: what the wheels of several targets install."""

from collections.abc import Sequence

from kernelpack.bundle.reader import Bundle
from kernelpack.errors import BundleError
from kernelpack.spec.variant import Variant


class Joined:
    """Bundles whose entries are chosen from together; an id is in one of them.

    Attributes:
        paths: their files.

    """

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self._bundles = tuple(bundles)
        self.paths = tuple(bundle.path for bundle in bundles)

    @property
    def where(self) -> str:
        """The files, for messages."""
        return ", ".join(map(str, self.paths))

    def variants(self, kernel: str | None = None) -> tuple[Variant, ...]:
        """The variants of a kernel, or of all, by kernel and id.

        Raises:
            BundleError: two bundles hold an entry of one id; names it and both.

        """
        found: dict[str, tuple[Variant, Bundle]] = {}
        for bundle in self._bundles:
            for variant in bundle.variants(kernel):
                if variant.id in found:
                    raise _twice(variant.id, found[variant.id][1], bundle)
                found[variant.id] = variant, bundle
        listed = (variant for variant, _ in found.values())
        return tuple(sorted(listed, key=lambda v: (v.kernel, v.abi, v.id)))

    def holding(self, variant_id: str) -> Bundle:
        """The bundle that holds an entry.

        Raises:
            BundleError: none does.

        """
        for bundle in self._bundles:
            if bundle.holds_entry(variant_id):
                return bundle
        raise BundleError(f"no entry `{variant_id}`", where=self.where)


def _twice(variant_id: str, one: Bundle, other: Bundle) -> BundleError:
    return BundleError(
        f"`{variant_id}` is in {one.path} too",
        where=str(other.path),
        hint="uninstall one of the two packages, or name a bundle: `kernelpack.load(path)`",
    )


def join(bundles: Sequence[Bundle]) -> Bundle | Joined:
    """Bundles as one; one alone is itself."""
    return bundles[0] if len(bundles) == 1 else Joined(bundles)
