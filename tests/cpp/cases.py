"""Random problems of every kernel, most of them as a server would have them."""

from random import Random

from kernelpack.kernels.registry import KERNELS
from kernelpack.spec.variant import Variant
from tests.kernels.known import known

STEMS = tuple(KERNELS)
DEVICES = ((9, 0), (9, 0), (10, 0), (10, 0), (8, 0))

Case = tuple[dict[str, int], tuple[int, int], dict[str, int]]


def case(chance: Random, variant: Variant) -> Case:
    """Sizes, a device and addresses for the kernel of a variant; some lack one."""
    choices = known(variant.kernel).SIZES | {"sm_count": (1, 108, 132, 148)}
    sizes = {name: number(chance, among) for name, among in choices.items()}
    unit = chance.choice([256, 256, 256, 16, 8])
    addresses = {a.name: unit * chance.randint(1, 2**44) for a in variant.arguments}
    for given in (sizes, addresses):
        if chance.random() < 0.02:
            del given[chance.choice(list(given))]
    return sizes, chance.choice(DEVICES), addresses


def number(chance: Random, among: tuple[int | range, ...]) -> int:
    """One of some numbers, or of a range among them."""
    found = chance.choice(among)
    return chance.choice(found) if isinstance(found, range) else int(found)
