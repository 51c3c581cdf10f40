"""What the fuzzer starts from: small bundles. `python -m tests.cpp.seeds FOLDER` writes them."""

import sys
from pathlib import Path

from tests.fakes.bundles import write_bundle
from tests.fakes.variants import variant


def write_seeds(folder: Path) -> None:
    """One variant, several of two targets, and clusters that depend on the sizes."""
    write_bundle(folder / "one.kpk", [variant()])
    write_bundle(folder / "four.kpk", [variant(arch=a, tile=t) for a in ARCHS for t in (16, 64)])
    write_bundle(folder / "sized.kpk", [variant(cluster="min(k // 64, 8)", shared_bytes="64 * k")])


ARCHS = ("sm_90a", "sm_100a")

if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
