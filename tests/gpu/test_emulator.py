"""The emulator beside the device: the same variant, inputs and plan, and so the same bits."""

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.ops.trial import Trial
from kernelpack.spec.variant import Variant
from tests.gpu.conftest import bundle_path

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def bundle(request):
    return open_bundle(bundle_path(request.config))


def test_the_emulator_gives_the_bits_of_the_device(bundle, trial_of, definition, case, variant):
    """Every output of a variant is equal, bit for bit, on the device and in the emulator."""
    trial = trial_of(definition.stem, case)
    on_device = {name: output.values for name, output in trial.run(variant).items()}
    emulated = on_emulator(bundle, trial, variant)
    assert {name: array.tobytes() for name, array in emulated.items()} == {
        name: array.tobytes() for name, array in on_device.items()
    }


def on_emulator(bundle, trial: Trial, variant: Variant):
    """The outputs of the variant's PTX, by the plan that the device got."""
    program = parse(bundle.ptx(bundle.find(variant.id).ptx_digest).text)
    sizes = trial.library.sizes(trial.case.sizes, trial.device)
    called = call(program, variant, sizes, trial.arrays, schedule="lazy", exact=True)
    called.result.raise_on_error()
    return called.outputs
