"""`check`: what is wrong with a bundle is found and named."""

from dataclasses import replace

import pytest

from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.format import Section
from kernelpack.bundle.reader import twin_of
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.check import check as check_module
from kernelpack.check.check import check
from kernelpack.check.finding import Finding
from kernelpack.errors import ToolchainError
from kernelpack.machine_code import lint
from kernelpack.machine_code.lint import Rule
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Cubin, Ptx, digest
from kernelpack.spec.params import Slot
from kernelpack.toolchain import elf, known_bad
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.ptxas import assemble
from tests.bundle.forge import forge, poke_row
from tests.fakes.variants import variant

pytestmark = pytest.mark.toolchain

HOPPER, BLACKWELL = variant(arch="sm_90a"), variant(arch="sm_100a")
PROVENANCE = Provenance(
    kernelpack="0.1.0",
    toolchain="cuda-13.4",
    front_end="nvrtc",
    release="13.4",
    toolchain_digest=digest("toolchain"),
)


def parameter(number: int, slot: Slot) -> str:
    if slot.size == 128:
        return f".param .align 64 .b8 p{number}[128]"
    return f".param .u{8 * slot.size} p{number}"


def ptx_of(made) -> Ptx:
    """A kernel of a variant's name and signature that does nothing."""
    params = ", ".join(parameter(n, slot) for n, slot in enumerate(made.slots))
    head = f".version 8.7\n.target {made.arch}\n.address_size 64\n"
    return Ptx(text=f"{head}.visible .entry {made.entry}({params}) {{ ret; }}\n")


@pytest.fixture(scope="session")
def cubins() -> dict[str, Cubin]:
    """Real machine code of both targets, by id."""
    toolchain = find("cuda-13.4", "nvrtc")
    return {v.id: assemble(ptx_of(v), toolchain, v.arch) for v in (HOPPER, BLACKWELL)}


def entry_of(made, cubin: Cubin) -> Entry:
    return Entry(
        variant=made,
        resources=elf.inspect(cubin, made.entry),
        image=cubin.image,
        target=cubin.target,
        ptx_digest=ptx_of(made).digest,
        source_digest=digest("source"),
    )


@pytest.fixture
def entries(cubins) -> list[Entry]:
    return [entry_of(v, cubins[v.id]) for v in (HOPPER, BLACKWELL)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.kpk"


def checked(path, entries):
    write(entries, path, PROVENANCE)
    return check(path)


def test_a_sound_bundle(path, entries):
    """Real machine code under its own index has no findings."""
    report = checked(path, entries)
    assert (report.entries, report.findings, report.is_sound) == (2, (), True)


@pytest.mark.parametrize("change", [lambda image: image[:-200], lambda image: image + b"\0" * 8])
def test_machine_code_of_another_length(path, entries, change):
    """A cubin that is cut, or has bytes after its end, is found."""
    hopper, blackwell = entries
    (finding,) = checked(path, [replace(hopper, image=change(hopper.image)), blackwell]).findings
    assert (finding.where, finding.is_error) == (f"{path}: {HOPPER.id}", True)


def test_a_budget_that_does_not_hold(path, entries):
    """More registers than the manifest allows are found, though cubin and index agree."""
    hopper, blackwell = entries
    budget = replace(HOPPER.budget, registers=1)
    (finding,) = checked(
        path, [replace(hopper, variant=replace(HOPPER, budget=budget)), blackwell]
    ).findings
    assert finding.what.startswith("uses ")
    assert finding.what.endswith("registers a thread, more than 1")


def test_the_ptx_of_another_entry(path, entries):
    """An entry that names the PTX of another is found."""
    hopper, blackwell = entries
    swapped = replace(hopper, ptx_digest=blackwell.ptx_digest)
    write([swapped, blackwell], path, PROVENANCE)
    write_ptx([ptx_of(BLACKWELL)], twin_of(path), PROVENANCE)
    assert [str(found).split(": ", 2)[2].split("\n")[0] for found in check(path).findings] == [
        "the PTX lacks the target sm_90a"
    ]


def test_machine_code_of_another_target(path, entries):
    """A cubin under the name of another target is found out, by its own note."""
    hopper, blackwell = entries
    report = checked(path, [replace(hopper, image=blackwell.image), blackwell])
    (finding,) = report.findings
    assert finding == Finding(
        where=f"{path}: {HOPPER.id}", what="the cubin is machine code of sm_100a, not sm_90a"
    )


def test_a_family_target_that_is_not(path, entries):
    """A cubin that was renamed from 100a to 100f is found out."""
    renamed = replace(BLACKWELL, arch=Arch("sm_100f"))
    resources = replace(entries[1].resources, target="sm_100f")
    made = replace(entries[1], variant=renamed, resources=resources, target="sm_100f")
    (finding,) = checked(path, [made]).findings
    assert finding.what == "the cubin is machine code of sm_100a, not sm_100f"


@pytest.mark.parametrize(
    ("name", "stated"), [("registers", 7), ("shared_bytes", 4096), ("stack_bytes", 16)]
)
def test_resources_that_differ(path, entries, name, stated):
    """A number of the index that the cubin contradicts is found, both numbers given."""
    true = getattr(entries[0].resources, name)
    resources = replace(entries[0].resources, **{name: stated})
    (finding,) = checked(path, [replace(entries[0], resources=resources)]).findings
    assert finding.what == f"{name}: the cubin has {true}, the index says {stated}"


def test_parameters_that_differ(path, cubins):
    """Parameters that the cubin has elsewhere are found."""
    made = replace(HOPPER, params=HOPPER.params[:-1])
    resources = elf.inspect(cubins[HOPPER.id], HOPPER.entry)
    entry = entry_of(HOPPER, cubins[HOPPER.id])
    entry = replace(entry, variant=made, resources=replace(resources, slots=made.slots))
    (finding,) = checked(path, [entry]).findings
    assert finding.what.startswith("slots: the cubin has")


def test_another_symbol(path, entries):
    """A cubin without the symbol of its entry is found."""
    made = replace(HOPPER, axes=(("DTYPE", "fp16"),))
    resources = replace(entries[0].resources, entry=made.entry)
    (finding,) = checked(path, [replace(entries[0], variant=made, resources=resources)]).findings
    assert f"the cubin has no entry `{made.entry}`" in finding.what


def test_not_machine_code(path, entries):
    """An image that is not a cubin is found; the other entries are checked."""
    report = checked(path, [replace(entries[0], image=b"text"), entries[1]])
    assert [f.what.startswith("not a cubin") for f in report.findings] == [True]


def test_every_damaged_entry_is_named(path, entries):
    """Each entry whose image is damaged has its own finding."""
    write(entries, path, PROVENANCE)
    data = bytearray(path.read_bytes())
    data[-600:] = bytes(600)
    path.write_bytes(data)
    found = {finding.where for finding in check(path).findings}
    assert str(path) in found
    assert found & {f"{path}: {v.id}" for v in (HOPPER, BLACKWELL)}


def test_not_a_bundle(path):
    """A file that is not a bundle is one finding."""
    path.write_text("{}")
    report = check(path)
    assert (report.entries, report.is_sound, len(report.findings)) == (None, False, 1)


@pytest.mark.parametrize(("severity", "is_sound"), [("refuse", False), ("warn", True)])
def test_known_mistakes(path, entries, monkeypatch, severity, is_sound):
    """A known mistake of the compiler is a finding; only one to refuse makes a bundle unsound."""
    known = known_bad.KnownBad(
        id="x",
        first=(13, 4),
        last=(13, 4),
        targets=("sm_90a",),
        mask=0,
        value=0,
        same=None,
        severity=severity,
        what="a mistake",
        hint="use another",
        thread="https://example.org/1",
    )
    monkeypatch.setattr(known_bad, "known_bad", lambda: (known,))
    report = checked(path, entries)
    assert ([f.what for f in report.findings], report.is_sound) == (
        ["a mistake (https://example.org/1)"],
        is_sound,
    )


MET = Rule(id="met", severity="refuse", what="never met", hint="meet", thread="a page")
SLOW = Rule(id="slow", severity="warn", what="is slow", hint="be quick", thread="a page")


@pytest.mark.parametrize(("rule", "is_sound"), [(MET, False), (SLOW, True)])
def test_what_the_lint_finds(path, entries, monkeypatch, rule, is_sound):
    """A rule that an entry's code breaks is a finding with its place; a warning is no verdict."""
    broken = lint.Finding(rule=rule, offsets=(0x10, 0x40))
    monkeypatch.setattr(check_module, "lint", lambda kernels, _: [(), (broken,)])
    report = checked(path, entries)
    (finding,) = report.findings
    assert finding.what == f"{rule.what} at 0x10, 0x40 [{rule.id}; a page]"
    assert (finding.hint, report.is_sound, report.unlinted) == (rule.hint, is_sound, "")


def test_nobody_to_lint(path, entries, monkeypatch):
    """Without nvdisasm the rest is checked, and one line says what was not."""
    monkeypatch.setattr(check_module, "find_disassembler", lambda: None)
    report = checked(path, entries)
    assert (report.is_sound, report.findings) == (True, ())
    assert report.unlinted.startswith("machine code was not linted: nvidia-cuda-nvdisasm is not")


def test_what_the_lint_cannot_read(path, entries, monkeypatch):
    """An nvdisasm that is too old says nothing of the bundle."""

    def blind(kernels, disassembler):
        raise ToolchainError("cannot read machine code of sm_100a", where="nvdisasm 1.0")

    monkeypatch.setattr(check_module, "lint", blind)
    report = checked(path, entries)
    assert ([str(f) for f in report.findings], report.is_sound) == (
        ["nvdisasm 1.0: warning: cannot read machine code of sm_100a"],
        True,
    )


def test_a_release_that_is_none(path, entries):
    """A bundle that does not say its release cannot be loaded; it is checked for all else."""
    write(entries, path, replace(PROVENANCE, release="unknown"))
    (found,) = check(path).findings
    assert found.what == "states the CUDA release `unknown`, which does not parse"


def test_a_target_of_the_future(path, entries):
    """An entry for an unknown target is a warning."""
    write(entries, path, PROVENANCE)

    def rename(index: bytearray) -> None:
        at = index.index(b"sm_100a")
        index[at : at + 7] = b"sm_200a"

    report = check(forge(path, rename))
    assert ([f.is_error for f in report.findings], report.is_sound) == ([False], True)


def test_a_forged_index(path, entries):
    """An index whose rows lead nowhere is unsound, with no other error."""
    write(entries, path, PROVENANCE)
    forge(path, poke_row(Section.PROVENANCE, 0, 3, 2**32 - 1))
    assert not check(path).is_sound


def test_a_whole_twin(path, entries):
    """The PTX beside a bundle is checked too."""
    write_ptx([ptx_of(v) for v in (HOPPER, BLACKWELL)], twin_of(path), PROVENANCE)
    assert checked(path, entries).findings == ()


def test_a_twin_of_another_build(path, entries):
    """A twin without an entry's PTX is found, the digest named."""
    write_ptx([ptx_of(HOPPER)], twin_of(path), PROVENANCE)
    (finding,) = checked(path, entries).findings
    assert finding.what.startswith(f"no PTX of digest {ptx_of(BLACKWELL).digest}")


def test_a_damaged_twin(path, entries):
    """A damaged twin is found, and named."""
    write_ptx([ptx_of(v) for v in (HOPPER, BLACKWELL)], twin_of(path), PROVENANCE)
    twin_of(path).write_bytes(twin_of(path).read_bytes()[:-1])
    (finding,) = checked(path, entries).findings
    assert finding.where == str(twin_of(path))
