"""A real GPU and a real bundle: `pytest --gpu --bundle PATH tests/gpu`.

With none, `kernelpack emulate --device h100 python -m pytest --gpu --collect-only ...` shows what
would run.
"""

from functools import lru_cache
from pathlib import Path

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.kernels.definition import Case, Definition
from kernelpack.kernels.registry import KERNELS
from kernelpack.load.library import Device, Library
from kernelpack.load.load import load
from kernelpack.ops.trial import Trial
from kernelpack.runtime.driver import connect
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant

DEVICE = 0
REPEATED = (
    "counts_1_to_33",
    "hidden_7168",
    "hidden_4096",
    "rank_128",
    "serving_m128_k7168_n64_g32",
    "bf16_576_all_rules",
    "bf16_576_serving_topk_2048",
    "decode_64_128_fp8_656",
    "decode_64_128",
)


def bundle_path(config: pytest.Config) -> Path:
    path = config.getoption("--bundle")
    if path is None:
        raise pytest.UsageError("tests on a GPU need --bundle PATH")
    return path


@lru_cache(maxsize=1)
def _device() -> Device:
    return connect().device(DEVICE)


@lru_cache(maxsize=1)
def _variants(path: Path) -> dict[str, list[Variant]]:
    """The bundle's variants that run on the device, by kernel."""
    capability = _device().capability
    found: dict[str, list[Variant]] = {stem: [] for stem in KERNELS}
    for variant in open_bundle(path).variants():
        if variant.arch.runs_on(capability) and variant.kernel in found:
            found[variant.kernel].append(variant)
    return found


def _serves(variant: Variant, case: Case) -> bool:
    device = _device()
    sizes = {**case.sizes, "sm_count": device.sm_count}
    return judge(variant, sizes, device.capability).cost is not None


def _pairs(config: pytest.Config, definition: Definition, names: tuple[str, ...]) -> list:
    """Every case with every variant that may run it; case by case, so inputs go up once."""
    variants = _variants(bundle_path(config))[definition.stem]
    return [
        pytest.param(definition, case, variant, id=f"{variant.id}-{case.name}")
        for case in definition.cases()
        if not names or case.name in names
        for variant in variants
        if _serves(variant, case)
    ]


def _names(test: str, definition: Definition) -> tuple[str, ...]:
    """The cases that a test takes, all where there are none: few where each runs for long."""
    if "emulator" in test:
        return tuple(case.name for case in definition.telling())
    return REPEATED if "repeated" in test else ()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"definition", "case", "variant"} <= set(metafunc.fixturenames):
        test = metafunc.function.__name__
        pairs = [p for d in KERNELS.values() for p in _pairs(metafunc.config, d, _names(test, d))]
        metafunc.parametrize(("definition", "case", "variant"), pairs)


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest) -> Library:
    """The bundle on the real driver, every kernel of the device loaded."""
    opened = load(bundle_path(request.config))
    opened.preload(device=DEVICE)
    return opened


@pytest.fixture(scope="session")
def trial_of(library: Library):
    """The trial of a case; the last few keep their inputs on the device."""
    stems = {definition.stem: definition for definition in KERNELS.values()}

    @lru_cache(maxsize=2)
    def made(stem: str, case: Case) -> Trial:
        return Trial(library, stems[stem], case, DEVICE)

    return made
