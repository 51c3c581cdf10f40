"""A bundle's provenance, as the sorted pairs of texts that its index holds."""

from collections.abc import Mapping

from kernelpack.bundle.entry import Provenance
from kernelpack.errors import BundleError

TOOLCHAIN = "toolchain.digest"
_KEYS = {
    "kernelpack": "kernelpack",
    "toolchain.name": "toolchain",
    "toolchain.front_end": "front_end",
    "toolchain.release": "release",
    TOOLCHAIN: "toolchain_digest",
    "shard": "shard",
}
_VERSION, _SOURCE, _LICENCE = "version.", "source.", "licence."


def to_pairs(provenance: Provenance) -> dict[str, str]:
    """Key to value, sorted by key; what is empty is left out."""
    texts = {key: str(getattr(provenance, name)) for key, name in _KEYS.items()}
    pairs = {key: text for key, text in texts.items() if text}
    pairs |= {f"{_VERSION}{name}": value for name, value in provenance.versions.items()}
    pairs |= {f"{_SOURCE}{path}": value for path, value in provenance.sources.items()}
    pairs |= {f"{_LICENCE}{path}": value for path, value in provenance.licences.items()}
    return dict(sorted(pairs.items()))


def from_pairs(pairs: Mapping[str, str]) -> Provenance:
    """The value; a key that is not there reads as empty, an unknown one is left out."""
    return Provenance(
        **{name: pairs.get(key, "") for key, name in _KEYS.items()},
        versions=_below(pairs, _VERSION),
        sources=_below(pairs, _SOURCE),
        licences=_below(pairs, _LICENCE),
    )


def _below(pairs: Mapping[str, str], prefix: str) -> dict[str, str]:
    found = {key: value for key, value in pairs.items() if key.startswith(prefix)}
    return {key.removeprefix(prefix): value for key, value in found.items()}


def source_of(key: str) -> str:
    """The path of the source that a key is of; empty where it is of none."""
    return key.removeprefix(_SOURCE) if key.startswith(_SOURCE) else ""


def floor(release: str, where: str = "") -> int:
    """The oldest driver for machine code of a CUDA release, as the driver counts its versions.

    Machine code runs on every driver of the same CUDA major (CUDA Compatibility, minor versions).

    Raises:
        BundleError: it is not a release.

    """
    major = release.partition(".")[0]
    if not (major.isascii() and major.isdigit()):
        hint = "build the bundle again"
        raise BundleError(
            f"states the CUDA release `{release}`, which does not parse", where=where, hint=hint
        )
    return int(major) * 1000
