"""From a file to a library: which bundle, which driver."""

import pytest

import kernelpack
from kernelpack.bundle.provenance import floor
from kernelpack.bundle.signature import signed
from kernelpack.errors import BundleError, DriverError
from kernelpack.load import load as module
from kernelpack.load.load import default, installed, load
from kernelpack.runtime.driver import Driver
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda
from tests.fakes.keys import make_keys
from tests.fakes.variants import variant


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "x.kpk", [variant()], release="13.4")


@pytest.fixture
def fresh():
    """`default` remembers nothing from other tests, and nothing of this one."""
    default.cache_clear()
    yield
    default.cache_clear()


def test_path(bundle):
    """A bundle is opened by path; no kernel is loaded yet."""
    cuda = FakeCuda()
    library = load(str(bundle), driver=Driver(cuda))
    assert (library.bundle.path, cuda.count("cuLibraryLoadData")) == (bundle, 0)


def test_a_trusted_signer(bundle, tmp_path):
    """A bundle is opened for those who trust whoever signed it."""
    private, public = make_keys(tmp_path)
    bundle.write_bytes(signed(bundle.read_bytes(), private))
    assert load(bundle, driver=Driver(FakeCuda()), trust=public).bundle.path == bundle


def test_every_bundle_must_be_signed(bundle, tmp_path):
    """Of several bundles, one that is not signed is refused by name."""
    private, public = make_keys(tmp_path)
    other = write_bundle(tmp_path / "y.kpk", [variant(arch="sm_100a")])
    bundle.write_bytes(signed(bundle.read_bytes(), private))
    with pytest.raises(BundleError, match="is not signed") as caught:
        load([bundle, other], driver=Driver(FakeCuda()), trust=public)
    assert caught.value.where == str(other)


def test_installed_bundle(bundle, monkeypatch):
    """Without a path the installed bundle is taken."""
    monkeypatch.setattr(module, "find", lambda: (bundle,))
    assert load(driver=Driver(FakeCuda())).bundle.path == bundle


def test_connects(bundle, monkeypatch):
    """Without a driver the library connects to the real one."""
    driver = Driver(FakeCuda())
    monkeypatch.setattr(module, "connect", lambda: driver)
    assert load(bundle).driver is driver


def test_default_is_opened_once(bundle, monkeypatch, fresh):
    """The library that ops share is opened once for the process."""
    monkeypatch.setattr(module, "find", lambda: (bundle,))
    monkeypatch.setattr(module, "connect", lambda: Driver(FakeCuda()))
    assert default() is default()


def test_installed_bundles(tmp_path, monkeypatch):
    """All that are installed are taken together: one library serves both targets."""
    made = [(a, variant(arch=a)) for a in ("sm_90a", "sm_100a")]
    paths = tuple(write_bundle(tmp_path / f"{a}.kpk", [v]) for a, v in made)
    monkeypatch.setattr(module, "find", lambda: paths)
    library = load(driver=Driver(FakeCuda()))
    assert {str(v.arch) for v in library.bundle.variants()} == {"sm_90a", "sm_100a"}
    assert library.preload(device=0) == 1


def test_none_is_installed(monkeypatch):
    """Where none is installed, the error says how to come by one."""
    monkeypatch.setattr(module, "find", tuple)
    with pytest.raises(BundleError, match=r"no kernel bundle is installed(.|\n)*hint: .*install"):
        installed()


@pytest.mark.parametrize(
    ("path", "message"),
    [(3, "is a int"), (["x.kpk", None], "is a NoneType"), ([], "no bundle is named")],
)
def test_no_path(path, message):
    """What is not a path, or no bundle at all, is refused by name."""
    with pytest.raises(BundleError, match=message):
        load(path, driver=Driver(FakeCuda()))


@pytest.mark.parametrize(
    ("release", "expected"), [("12.9", 12_000), ("13.0", 13_000), ("13.4", 13_000)]
)
def test_floor(release, expected):
    """Machine code runs on every driver of its CUDA major."""
    assert expected == floor(release)


def test_driver_older_than_the_floor(bundle):
    """An older driver is refused before any load: what was found, what is needed."""
    cuda = FakeCuda(version=12_080)
    with pytest.raises(
        DriverError, match=r"needs a driver of CUDA 13.0 .*found a driver of CUDA 12.8"
    ):
        load(bundle, driver=Driver(cuda))
    assert cuda.count("cuLibraryLoadData") == 0


@pytest.mark.parametrize("version", [13_000, 13_040, 14_000])
def test_driver_at_or_above_the_floor(bundle, version):
    """A driver of the same major or a newer one is accepted."""
    assert load(bundle, driver=Driver(FakeCuda(version=version))).driver.version == version


def test_public_names(bundle):
    """`kernelpack.load` opens a bundle, whatever was imported before; so does its package."""
    driver = Driver(FakeCuda())
    opened = [kernelpack.load(bundle, driver=driver) for _ in range(2)]
    assert [type(library) for library in opened] == [kernelpack.Library] * 2
