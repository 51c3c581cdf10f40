"""The bundles that a host program loads: their machine code runs by the PTX beside them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from kernelpack.bundle.format import Holds
from kernelpack.bundle.reader import Bundle, open_bundle, open_entries
from kernelpack.emulate.devices import DEVICES, Device
from kernelpack.emulate.options import TextOf
from kernelpack.errors import BundleError, UnsupportedError
from kernelpack.spec.arch import TARGETS, Capability

_ELF = b"\x7fELF"


def text_of(named: Iterable[Path], words: Sequence[str], device: Device) -> TextOf:
    """The PTX of machine code of bundles that are named, or that a program's arguments name.

    Raises:
        BundleError: a named file is not a bundle, or PTX that the device runs is missing.
        UnsupportedError: the device runs nothing of any of them.

    """
    bundles = {path.resolve(): open_entries(path) for path in named}
    bundles |= {path.resolve(): open_bundle(path) for path in _among(words)}
    held = tuple(bundles.values())
    _check(held, device)
    known = {x.image_digest: (bundle, x.ptx_digest) for bundle in held for x in bundle.records()}

    def find(image: bytes) -> str | None:
        bundle, digest = known.get(sha256(image).hexdigest(), (None, ""))
        if bundle:
            return bundle.ptx(digest).text
        if held and image.startswith(_ELF):
            raise UnsupportedError(
                f"machine code that is not of {_names(held)}",
                hint="name every bundle that the program loads, as an argument or by --bundle",
            )
        return None

    return find


def _among(words: Sequence[str]) -> Iterator[Path]:
    """The arguments, also those of options (`--kernels=x.kpk`), that are bundles of cubins.

    Any other file is left to the program, which may be there to refuse it.
    """
    for word in words:
        path = next((Path(w) for w in (word, word.partition("=")[2]) if Path(w).is_file()), None)
        if path and path.suffix == ".kpk":
            with suppress(BundleError):
                if open_bundle(path).holds is Holds.CUBIN:
                    yield path


def _check(bundles: Sequence[Bundle], device: Device) -> None:
    """Refuse before the program starts what could not run in the end."""
    runs = [bundle for bundle in bundles if _first(bundle, device.capability)]
    for bundle in runs:
        bundle.ptx(_first(bundle, device.capability))
    if not bundles or runs:
        return
    targets = sorted({record.target for bundle in bundles for record in bundle.records()})
    fitting = [
        f"--device {name}"
        for name, each in DEVICES.items()
        if any(_runs(target, each.capability) for target in targets)
    ]
    raise UnsupportedError(
        f"built for {', '.join(targets) or 'no target'}, and the device is an {device.name}",
        where=_names(bundles),
        hint=" or ".join(fitting) or "build it for a target that is emulated: sm_100a, sm_90a",
    )


def _first(bundle: Bundle, capability: Capability) -> str:
    """The digest of the first PTX that a device runs; empty where there is none."""
    fitting = (x.ptx_digest for x in bundle.records() if _runs(x.target, capability))
    return next(fitting, "")


def _runs(target: str, capability: Capability) -> bool:
    return target in TARGETS and capability in TARGETS[target].capabilities


def _names(bundles: Iterable[Bundle]) -> str:
    return ", ".join(str(bundle.path) for bundle in bundles)
