"""What the fuzzer starts from: small bundles. `python -m tests.cpp.seeds FOLDER` writes them."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack.bundle.signature import signed
from tests.fakes.bundles import write_bundle
from tests.fakes.keys import make_keys
from tests.fakes.variants import NUMBERS, variant


def write_seeds(folder: Path) -> None:
    """One variant, also signed; several of two targets; numbers; clusters by the sizes."""
    one = write_bundle(folder / "one.kpk", [variant()])
    with TemporaryDirectory() as keys:
        private, _ = make_keys(Path(keys), seed=1)
        (folder / "signed.kpk").write_bytes(signed(one.read_bytes(), private))
    write_bundle(folder / "four.kpk", [variant(arch=a, tile=t) for a in ARCHS for t in (16, 64)])
    write_bundle(folder / "numbers.kpk", [variant(numbers=NUMBERS), variant(tile=16)])
    write_bundle(folder / "sized.kpk", [variant(cluster="min(k // 64, 8)", shared_bytes="64 * k")])


ARCHS = ("sm_90a", "sm_100a")

if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
