"""Several bundles as one, and who signed them: as Python has it, in Python's words."""

import pytest

from kernelpack.bundle.container import seal
from kernelpack.bundle.format import SIGNATURE
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.signature import signed
from kernelpack.errors import BundleError
from kernelpack.load.load import open_without_driver
from tests.bundle.forge import forge
from tests.cpp.compiler import SANITIZE, ask, compile_program, said
from tests.fakes.bundles import write_bundle
from tests.fakes.keys import make_keys
from tests.fakes.variants import variant


def python(paths, trust=None):
    """The ids of all variants, or the error, as `inspect` prints them."""
    try:
        return " ".join(v.id for v in open_without_driver(paths, trust=trust).variants())
    except BundleError as error:
        return said(error)


def inspected(inspect, paths, trust=None):
    """What `inspect` says of the same."""
    words = ["join"] if trust is None else ["trust", *trust]
    (line,) = ask(inspect, *words, lines=["\t".join(map(str, paths))])
    return line


@pytest.fixture
def three(tmp_path):
    """Bundles of two targets, and one that holds an entry of the first again."""
    made = {
        "hopper": [variant(out=out) for out in ("fp32", "bf16")],
        "blackwell": [variant(arch="sm_100a")],
        "again": [variant(arch="sm_100f"), variant()],
    }
    return [write_bundle(tmp_path / f"{name}.kpk", held) for name, held in made.items()]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ([0], "[arch=sm_90a"),
        ([0, 1], "[arch=sm_100a"),
        ([1, 0], "[arch=sm_90a"),
        ([0, 1, 2], "hopper.kpk too"),
        ([2, 0], "again.kpk too"),
    ],
)
def test_bundles_as_one(inspect, three, which, words):
    """The same variants in the same order; an id in two bundles is refused with both names."""
    paths = [three[number] for number in which]
    assert python(paths) == inspected(inspect, paths)
    assert words in python(paths)


def signed_by(path, seed):
    """Sign a bundle with the key of a seed; its public key."""
    private, public = make_keys(path.parent, seed)
    path.write_bytes(signed(path.read_bytes(), private))
    return public


def test_signed_bundles(inspect, three):
    """Bundles that trusted keys signed, each by one of them, are read."""
    keys = [signed_by(path, seed) for seed, path in enumerate(three[:2], 1)]
    told = inspected(inspect, three[:2], keys)
    assert (told, told.startswith("error")) == (python(three[:2], keys), False)


def damaged(path):
    """A bundle whose index was changed under right digests, with the signature that it had."""
    signature = open_bundle(path).signature
    forge(path, lambda index: index.extend(bytes(8)))
    path.write_bytes(seal(path.read_bytes(), signature))


def sealed(signature):
    return lambda path: path.write_bytes(seal(path.read_bytes(), signature(path)))


def flipped(at):
    """The signature with one bit of it changed."""

    def change(path):
        signature = bytearray(open_bundle(path).signature)
        signature[at] ^= 1
        return bytes(signature)

    return sealed(change)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (sealed(lambda _: b""), "is not signed"),
        (sealed(lambda _: b"x" * 7), "a signature of 7 bytes"),
        (sealed(lambda _: SIGNATURE.pack(9, 0, b"", b"")), "signed by algorithm 9"),
        (lambda path: signed_by(path, 2), "which is not trusted\\nhint: trusted: "),
        (damaged, "the signature is not of this bundle"),
        (flipped(8), "which is not trusted"),
        (flipped(40), "the signature is not of this bundle"),
        (flipped(103), "the signature is not of this bundle"),
    ],
)
def test_not_signed_as_asked(inspect, three, edit, words):
    """Whoever did not sign is refused, before anything else is read."""
    key = signed_by(three[0], 1)
    edit(three[0])
    told = inspected(inspect, three[:1], [key])
    assert told == python(three[:1], [key])
    assert words in told


def test_nobody_is_trusted(inspect, three):
    """No key at all trusts nobody; it is not the same as not asking."""
    signed_by(three[0], 1)
    told = inspected(inspect, three[:1], [])
    assert told == python(three[:1], [])
    assert told.endswith("hint: trusted: none")


OTHER_KEYS = {
    "private": "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"
    "-----END PRIVATE KEY-----\n",
    "x25519": "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VuAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
    "-----END PUBLIC KEY-----\n",
    "empty": "",
    "noise": "\0 no key",
    "cut": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAA\n-----END PUBLIC KEY-----\n",
}


@pytest.mark.parametrize("name", OTHER_KEYS)
def test_no_public_key(inspect, three, tmp_path, name):
    """A file that holds no public key of Ed25519 is refused by name."""
    key = tmp_path / name
    key.write_text(OTHER_KEYS[name])
    told = inspected(inspect, three[:1], [key])
    assert told == python(three[:1], [key])
    assert "is not a public key of Ed25519" in told


def test_no_file_of_a_key(inspect, three, tmp_path):
    """A key that is not there, and one that is a folder, cannot be read."""
    missing = inspected(inspect, three[:1], [tmp_path / "none.pem"])
    assert missing == python(three[:1], [tmp_path / "none.pem"])
    assert inspected(inspect, three[:1], [tmp_path]) == python(three[:1], [tmp_path])


def test_a_key_after_other_text(inspect, three):
    """What is before a key in its file is passed over."""
    key = signed_by(three[0], 1)
    key.write_text(f"of the build machine\n{key.read_text()}")
    told = inspected(inspect, three[:1], [key])
    assert (told, told.startswith("error")) == (python(three[:1], [key]), False)


WITHOUT_LIBCRYPTO = """
#include <kernelpack/loader.hpp>
#include <cstdio>
int main() {
  const auto opened = kernelpack::detail::Ed25519::open({"libnone.so.3", "libnone.so.1"});
  std::puts(opened ? "opened" : opened.error().text().c_str());
}
"""


def test_without_libcrypto(programs):
    """Where there is no libcrypto, the error says what to install."""
    source = programs / "without.cpp"
    source.write_text(WITHOUT_LIBCRYPTO)
    what, hint = ask(compile_program(source, programs / "without", *SANITIZE))
    assert what.startswith("signatures need libcrypto, which cannot be opened: libnone.so.1: ")
    assert hint.startswith("hint: install OpenSSL")
