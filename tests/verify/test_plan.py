"""Which runs prove the small kernel's variants."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelpack.kernels.kv_cache_append.definition import KV_CACHE_APPEND
from kernelpack.kernels.mla_decode_attention.definition import MLA_DECODE_ATTENTION
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.rows import ROWS
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.verify import plan
from kernelpack.verify.plan import FEW, Planner, Scope, is_held, role, serves, shape
from tests.verify import small

VARIANTS = (small.variant(32, cost="n + 32"), small.variant(64, cost="n + 64"))
ROOT = Path(__file__).parents[2]
CHOSEN, OTHER = (variant.id for variant in VARIANTS)


def planner(**scope):
    return Planner(definition=small.DEFINITION, variants=VARIANTS, scope=Scope(**scope))


def jobs(keep="", **scope):
    return planner(**scope).jobs(lambda variant_id: keep in variant_id)


@pytest.mark.parametrize("variant_id", [CHOSEN, OTHER])
def test_telling_cases(variant_id):
    """Every variant runs every telling case under the lazy schedule."""
    found = {j.case.name for j in jobs() if (j.variant_id, j.schedule) == (variant_id, "lazy")}
    assert found >= {"n_5", "n_40"}


def test_devices():
    """Small and large devices take turns."""
    assert {job.sm_count for job in jobs()} == {FEW, 148}


def test_pairs():
    """Each small case meets each schedule."""
    met = {(job.case.name, role(job.schedule)) for job in jobs()}
    schedules = ("eager", "fair", "lazy", "starving warp 0")
    assert {(f"n_{n}", schedule) for n in (5, 40, 64) for schedule in schedules} <= met


def test_a_group_shares_interleavings():
    """Cases of a group meet each schedule together; each of them still runs on each device."""
    together = replace(small.DEFINITION, group=lambda _: "n")
    found = Planner(definition=together, variants=VARIANTS, scope=Scope()).jobs(lambda _: True)
    assert {role(job.schedule) for job in found} == {role(job.schedule) for job in jobs()}
    assert {(j.case.name, j.sm_count) for j in found} == {(j.case.name, j.sm_count) for j in jobs()}
    assert len(found) < len(jobs())


def test_selected():
    """A run says whether selection takes its variant; the least cost is taken."""
    found = jobs()
    assert {job.variant_id for job in found if job.selected} == {CHOSEN}
    assert {job.variant_id for job in found if not job.selected} == {OTHER}


def test_unselected():
    """A variant that no case selects is known."""
    cases = [[case.name for case, _ in planner().selected(variant)] for variant in VARIANTS]
    assert [sorted(set(names)) for names in cases] == [["n_40", "n_5", "n_500", "n_64"], []]


def test_guards():
    """A case that the variant does not serve is not run."""
    assert "n_2000" not in {job.case.name for job in jobs(full=True)}


def test_keep():
    """Only the variants wanted run, and selection still sees all of them."""
    found = jobs(keep="tile=64")
    assert ({job.variant_id for job in found}, any(j.selected for j in found)) == ({OTHER}, False)


@pytest.mark.parametrize("variant_id", [CHOSEN, OTHER])
def test_a_variant_alone(variant_id):
    """A variant looked at alone runs what it does among all, and no more."""
    whole = [job for job in jobs() if job.variant_id == variant_id]
    assert whole == list(jobs(keep=variant_id))


def test_one_schedule():
    """A schedule that is asked for is the only one, on the telling cases."""
    found = jobs(schedule="fair", seed=7)
    assert {(job.schedule, job.seed) for job in found} == {("fair", 7)}


def test_full():
    """A full run has every small case on every device, under every schedule that holds no warp."""
    found = {(j.case.name, j.sm_count, j.schedule, j.seed) for j in jobs(keep=CHOSEN, full=True)}
    expected = {
        (f"n_{n}", sm, *run)
        for n in (5, 40, 64)
        for sm in (148, FEW)
        for run in (("eager", 0), ("fair", 0), ("lazy", 0), ("lazy", 1), ("lazy", 2))
    }
    assert {run for run in found if run[0] != "n_500" and not is_held(run[2])} == expected


def test_full_with_warps_held_back():
    """Every small case has every warp held back once, on the devices in turn."""
    found = [j for j in jobs(keep=CHOSEN, full=True) if is_held(j.schedule)]
    assert [(j.case.name, j.sm_count, j.schedule) for j in found] == [
        ("n_5", FEW, "starving:0:0"),
        ("n_40", 148, "starving:0:0"),
        ("n_64", FEW, "starving:0:0"),
    ]


def test_full_of_large_cases():
    """A large case that selects the variant runs under one schedule on each device, in turn."""
    large = [job for job in jobs(full=True) if job.case.name == "n_500"]
    assert {(job.variant_id, job.sm_count, job.schedule) for job in large} == {
        (CHOSEN, 148, "lazy"),
        (CHOSEN, FEW, "eager"),
    }


def test_full_without_the_largest(monkeypatch):
    """A case that an emulator takes days for is a GPU's alone."""
    monkeypatch.setattr(plan, "MOST_ELEMENTS", 999)
    assert "n_500" not in {job.case.name for job in jobs(full=True)}


def test_full_of_large_clusters():
    """Of a large cluster the first two CTAs and the last are held back, each warp of them."""
    wide = small.changed({"cluster": (small.constant(16), *small.variant().launch.cluster[1:])})
    made = Planner(definition=small.DEFINITION, variants=(wide,), scope=Scope(full=True))
    held = {job.schedule for job in made.jobs(lambda _: True) if ":" in job.schedule}
    assert held == {"starving:0:0", "starving:1:0", "starving:15:0"}


def test_each_run_once():
    """No run is planned twice."""
    found = jobs()
    assert len(found) == len(set(found))


def test_a_variants_runs_are_together():
    """The report reads variant by variant."""
    ids = [job.variant_id for job in jobs()]
    assert ids == sorted(ids, key=[CHOSEN, OTHER].index)


def test_serves_and_shape():
    """Guards decide who serves; the launch decides how many CTAs and warps there are."""
    case = small.CASES[0]
    assert serves(VARIANTS[0], case, FEW)
    assert not serves(VARIANTS[0], small.CASES[4], FEW)
    assert shape(VARIANTS[0], case, FEW) == (1, 1)


@pytest.fixture(scope="module")
def shared():
    """The default plan of a kernel whose cases are kinds in many formats."""
    variants = expand(load(ROOT / "manifests/kv_cache_append.yaml"))
    made = Planner(definition=KV_CACHE_APPEND, variants=variants, scope=Scope())
    return made, made.jobs(lambda _: True)


def served(planner):
    """Each case with the targets that have a variant for it."""
    cases = planner.definition.small()
    return {(v.arch.name, c.name) for v in planner.variants for c in cases if serves(v, c, FEW)}


def arch_of(job):
    return job.variant_id.partition("arch=")[2].partition(",")[0].removesuffix("]")


def test_every_case_runs_on_every_target(shared):
    """No kind of case is left out for a format that is served."""
    planner, found = shared
    assert served(planner) == {(arch_of(job), job.case.name) for job in found}


def test_targets_of_equal_variants_have_equal_plans(shared):
    """What runs for a B200 runs for a B300: the same cases, devices and interleavings."""
    _, found = shared
    plans = {arch: [] for arch in ("sm_100a", "sm_103a", "sm_90a")}
    for job in found:
        arch = arch_of(job)
        plans[arch].append(replace(job, variant_id=job.variant_id.replace(arch, "")))
    assert plans["sm_100a"] == plans["sm_103a"] != plans["sm_90a"]


def test_interleavings_are_shared(shared):
    """Every kind of case, and every format on every target, meets every interleaving."""
    _, found = shared
    runs = [(job.case.kind, job.case.name.removesuffix(job.case.kind), job) for job in found]
    roles = {role(job.schedule) for _, _, job in runs}
    kinds, formats = {kind for kind, *_ in runs}, {(f, arch_of(job)) for _, f, job in runs}
    assert len(kinds) * len(roles) == len({(kind, role(job.schedule)) for kind, _, job in runs})
    met = {(f, arch_of(job), role(job.schedule)) for _, f, job in runs}
    assert len(formats) * len(roles) == len(met)


def test_runs_of_many_formats_are_few(shared):
    """One kind in one format meets few interleavings, so formats multiply cases alone."""
    planner, found = shared
    cases, roles = served(planner), {role(job.schedule) for job in found}
    assert len(found) < 2 * len(cases)
    assert len(cases) * len(roles) > 2000


@pytest.mark.parametrize(
    ("definition", "formats"),
    [(SPARSE_MLA_PREFILL, len(ROWS)), (MLA_DECODE_ATTENTION, 14), (KV_CACHE_APPEND, 14)],
)
def test_a_name_is_a_format_and_a_kind(definition, formats):
    """Each format of a kernel's cases has its own beginning, and kinds have none."""
    cases = definition.small()
    found = {case.name.removesuffix(definition.kind(case)) for case in cases}
    kinds = {definition.kind(case) for case in cases}
    assert len(found) == formats
    assert not [kind for kind in kinds if kind.startswith(tuple(found))]
