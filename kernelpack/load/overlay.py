"""The file of measured times, that `kernelpack tune` writes and `load(…, tuned=…)` takes. JSON.

    {"format": 1,
     "device": {"name": "NVIDIA H200", "capability": [9, 0], "sm_count": 132},
     "driver": "580.65.06, driver of CUDA 13.0",
     "kernels": [{"kernel": "lora_shrink_qkv",
                  "variants": [{"id": "lora_shrink_qkv[…]", "image": "3f…"}, …],
                  "problems": [{"sizes": {"m": 16, …}, "nanoseconds": [4210, 0, …]}, …]}]}

Nanoseconds are in the order of the variants; 0 is one that was not measured. A file is stale where
the bundle holds other machine code than was measured, or variants that were not: its choices would
not be the best ones, and nobody would notice. So it is refused. The C++ loader reads the same
(detail/overlay.hpp).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpack.bundle.joined import Joined
from kernelpack.bundle.reader import Bundle
from kernelpack.errors import BundleError
from kernelpack.runtime.driver import Device
from kernelpack.spec.tuned import Measured, Overlay, TunedDevice, TunedKernel
from kernelpack.spec.variant import Variant

FORMAT = 1
MOST_BYTES = 1 << 26
_LARGEST = 2**63 - 1


def read_overlay(path: Path) -> Overlay:
    """The times in a file.

    Raises:
        BundleError: there is no such file, or this version cannot read it.

    """
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise BundleError(what, where=str(path), hint=_HINT) from error
    try:
        return _overlay(json.loads(data.decode())) if len(data) <= MOST_BYTES else _refuse()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = "no file of measured times that this version reads"
        raise BundleError(what, where=str(path), hint=_HINT) from error


_HINT = "`kernelpack tune` writes one"


def _overlay(value: Any) -> Overlay:  # noqa: ANN401 - of JSON
    if value["format"] != FORMAT:
        _refuse()
    device = value["device"]
    major, minor = device["capability"]
    return Overlay(
        device=TunedDevice(
            name=_text(device["name"]),
            capability=(_number(major), _number(minor)),
            sm_count=_number(device["sm_count"]),
        ),
        driver=_text(value["driver"]),
        kernels=tuple(map(_kernel, value["kernels"])),
    )


def _kernel(value: Mapping[str, Any]) -> TunedKernel:
    images = {_text(v["id"]): _text(v["image"]) for v in value["variants"]}
    return TunedKernel(
        kernel=_text(value["kernel"]),
        images=images,
        problems=tuple(_problem(each, list(images)) for each in value["problems"]),
    )


def _problem(value: Mapping[str, Any], ids: Sequence[str]) -> Measured:
    times = zip(ids, map(_number, value["nanoseconds"]), strict=True)
    return Measured(
        sizes={_text(name): _number(size) for name, size in value["sizes"].items()},
        nanoseconds={one: time for one, time in times if time},
    )


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        _refuse()
    assert isinstance(value, int)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        _refuse()
    assert isinstance(value, str)
    value.encode()  # half of a pair of surrogates is not a text
    return value


def _refuse() -> Any:  # noqa: ANN401 - never returns
    raise ValueError


def overlay_text(overlay: Overlay) -> str:
    """The file of some times."""
    device = overlay.device
    head = {
        "format": FORMAT,
        "device": {
            "name": device.name,
            "capability": list(device.capability),
            "sm_count": device.sm_count,
        },
        "driver": overlay.driver,
        "kernels": [_kernel_record(kernel) for kernel in overlay.kernels],
    }
    return json.dumps(head, indent=1, ensure_ascii=False) + "\n"


def _kernel_record(kernel: TunedKernel) -> dict[str, object]:
    return {
        "kernel": kernel.kernel,
        "variants": [{"id": one, "image": image} for one, image in kernel.images.items()],
        "problems": [
            {
                "sizes": dict(problem.sizes),
                "nanoseconds": [problem.nanoseconds.get(one, 0) for one in kernel.images],
            }
            for problem in kernel.problems
        ],
    }


def overlay_of(bundles: Bundle | Joined, path: Path) -> Overlay:
    """The times in a file, checked against the machine code that is there.

    Raises:
        BundleError: there is no such file, this version cannot read it, or it is stale.

    """
    found = read_overlay(path)
    check_current(found, bundles, path)
    return found


def is_of(overlay: Overlay, device: Device) -> bool:
    """Whether times are of a device."""
    return overlay.device == TunedDevice(
        name=device.name, capability=device.capability, sm_count=device.sm_count
    )


def check_devices(overlay: Overlay, devices: Iterable[Device], where: Path) -> None:
    """Refuse times of a device that is not there.

    Raises:
        BundleError: names the device and those that are there.

    """
    seen = list(devices)
    if not any(is_of(overlay, device) for device in seen):
        there = ", ".join(map(str, seen)) or "no GPU"
        what = f"was measured on {overlay.device}; here is {there}"
        raise BundleError(what, where=str(where), hint="measure here: `kernelpack tune`")


def check_current(overlay: Overlay, bundles: Bundle | Joined, where: Path) -> None:
    """Refuse times of other machine code than is held.

    Raises:
        BundleError: names the first variant that is not as it was measured.

    """
    for kernel in overlay.kernels:
        if stale := _stale(kernel, overlay.device, bundles):
            hint = "measure again: `kernelpack tune`"
            raise BundleError(f"is stale: {stale}", where=str(where), hint=hint)


def _stale(kernel: TunedKernel, device: TunedDevice, bundles: Bundle | Joined) -> str:
    """What of a kernel differs from the measured one; empty if nothing does."""
    variants = bundles.variants(kernel.kernel)
    able = {v.id: v for v in variants if v.arch.runs_on(device.capability)}
    for one, image in kernel.images.items():
        if one not in able:
            return f"{bundles.where} holds no `{one}`"
        if image_of(able[one], bundles) != image:
            return f"{bundles.where} holds other machine code of `{one}`"
    for one in able:
        if one not in kernel.images:
            return f"`{one}` of {bundles.where} was not measured"
    names = {size.name for variant in able.values() for size in variant.sizes}
    for problem in kernel.problems:
        if set(problem.sizes) != names:
            return f"a problem of `{kernel.kernel}` has other sizes than {', '.join(sorted(names))}"
    return ""


def image_of(variant: Variant, bundles: Bundle | Joined) -> str:
    """The digest of a variant's machine code."""
    return bundles.holding(variant.id).find(variant.id).image_digest
