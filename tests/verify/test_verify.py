"""The story of a verification: plan, cache, run, report."""

from dataclasses import replace

import pytest

from kernelpack.errors import BundleError, KernelpackError, ToolchainError
from kernelpack.verify.outcome import State
from kernelpack.verify.plan import Scope
from kernelpack.verify.verify import Options, verify
from kernelpack.workers.pool import Finished, run_here
from tests.verify import small
from tests.verify.watching import Watching


@pytest.fixture
def options(bundle, tmp_path):
    return Options(bundle=bundle, cache_dir=tmp_path / "cache")


def run(options, watching=None, runner=run_here):
    return verify(options, watching or Watching(), runner)


def test_right(options):
    """A right bundle is right in every run of every variant."""
    report = run(options)
    assert (report.is_right, len(report.by_variant), report.failures) == (True, 2, ())


def test_every_run_is_told(options):
    """Whoever watches hears how many runs there are, and of each."""
    watching = Watching()
    report = run(options, watching)
    assert watching.total == len(watching.told) == len(report.outcomes)


def test_cached(options):
    """What was proven is not run again."""
    run(options)
    again = run(options)
    assert {outcome.cached for outcome in again.outcomes} == {True}


def test_how_long_is_foreseen(options):
    """Whoever watches hears how long it may take; what was proven takes no time."""
    first, again = Watching(), Watching()
    run(options, first)
    run(options, again)
    assert first.seconds > again.seconds == 0


def test_resumed(options):
    """A run that was interrupted goes on where it stopped."""
    with pytest.raises(KeyboardInterrupt):
        run(options, Watching(until=3))
    again = run(options)
    assert sum(outcome.cached for outcome in again.outcomes) == 3


def test_order_is_the_plans(options):
    """Outcomes are in the order of the plan, however they end."""

    def backwards(work, items, jobs):
        yield from reversed(list(run_here(work, items, jobs)))

    first = run(options)
    other = run(replace(options, cache_dir=options.cache_dir / "other"), runner=backwards)
    assert [o.job for o in first.outcomes] == [o.job for o in other.outcomes]


@pytest.mark.parametrize("tile", [32, 64])
def test_wrong_variant(tile, tmp_path):
    """One wrong variant of two makes the whole wrong, and is named."""
    texts = {other: small.ptx(entry=f"twice_{other}") for other in (32, 64)}
    texts[tile] = small.ptx("neg.f32 %f1, %f1;", entry=f"twice_{tile}")
    report = run(Options(bundle=small.bundle(tmp_path / "x.kpk", texts), cache_dir=tmp_path / "c"))
    assert not report.is_right
    assert {o.variant_id for o in report.failures} == {f"twice[arch=sm_100a,tile={tile}]"}
    assert {o.state for o in report.failures} == {State.WRONG}


def test_keep(options):
    """Only the variants that match are verified."""
    report = run(replace(options, keep="tile=64"))
    assert list(report.ptx) == ["twice[arch=sm_100a,tile=64]"]


def test_schedule(options):
    """A schedule that was asked for is the only one."""
    report = run(replace(options, scope=Scope(schedule="fair")))
    assert {outcome.job.schedule for outcome in report.outcomes} == {"fair"}


def test_nothing_to_verify(options):
    """A choice that keeps nothing is refused: nothing would be proven."""
    with pytest.raises(KernelpackError, match="no id holds `sm_42`"):
        run(replace(options, keep="sm_42"))


def test_no_twin(options):
    """Without its PTX a bundle cannot be verified; the missing file is named."""
    twin = options.bundle.with_suffix(".ptx.kpk")
    twin.unlink()
    with pytest.raises(BundleError, match=r"x\.ptx\.kpk: the PTX of this bundle is missing"):
        run(options)


def test_two_targets_of_one_ptx(tmp_path):
    """PTX that differs in the name of the target alone is run once, for both."""
    asked = Options(bundle=small.of_two_targets(tmp_path / "x.kpk"), cache_dir=tmp_path / "cache")
    watching, done = Watching(), []

    def counting(work, items, jobs):
        done.extend(items)
        return run_here(work, items, jobs)

    report = run(asked, watching, counting)
    b200, b300 = report.by_variant.values()
    assert len(watching.told) == len(report.outcomes) == 2 * len(done)
    assert [replace(o.job, variant_id="") for o in b200] == [
        replace(o.job, variant_id="") for o in b300
    ]
    assert ({o.cached for o in b200}, {o.cached for o in b300}) == ({False}, {True})
    assert all(outcome.cached for outcome in run(asked).outcomes)


def test_two_targets_of_other_ptx(tmp_path):
    """A kernel that does something else on the other target is run there, and found wrong."""
    bundle = small.of_two_targets(tmp_path / "x.kpk", "neg.f32 %f1, %f1;")
    report = run(Options(bundle=bundle, cache_dir=tmp_path / "cache"))
    assert {o.variant_id for o in report.failures} == {"twice[arch=sm_103a,tile=32]"}
    assert not any(outcome.cached for outcome in report.outcomes)


def in_batches(monkeypatch):
    """Many runs of a variant go to a worker at once."""
    monkeypatch.setattr("kernelpack.verify.verify.BATCHES_A_WORKER", 1)


def test_a_worker_has_runs_of_one_variant_together(options, monkeypatch):
    """The outcomes are those of runs one by one, in the same order."""
    alone = run(options)
    in_batches(monkeypatch)
    sizes = []

    def counting(work, items, jobs):
        sizes.extend(map(len, items))
        assert all(len({task.job.variant_id for task in item}) == 1 for item in items)
        return run_here(work, items, jobs)

    other = replace(options, cache_dir=options.cache_dir / "other", jobs=1)
    together = run(other, runner=counting)
    assert max(sizes) > 1
    assert [plain(o) for o in together.outcomes] == [plain(o) for o in alone.outcomes]


def plain(outcome):
    return replace(outcome, seconds=0)


def test_a_run_that_kills_its_worker_is_found_out(options, monkeypatch):
    """The others that it was given with have their outcomes."""
    in_batches(monkeypatch)
    bad = []

    def killing(work, items, jobs):
        for index, tasks in enumerate(items):
            bad.extend(tasks[1:2] if not bad else ())
            if set(bad) & set(tasks):
                work(tasks[:1] if len(tasks) > 1 else [])
                yield Finished(index=index, error=ToolchainError("a worker was killed by SIGKILL"))
            else:
                yield from (replace(f, index=index) for f in run_here(work, [tasks], jobs))

    report = run(replace(options, jobs=1), runner=killing)
    assert [o.job for o in report.outcomes if o.state is not State.RIGHT] == [bad[0].job]
    assert not any(o.cached for o in report.outcomes)


def test_worker_that_dies(options):
    """A run whose worker was killed is not right, and says why."""

    def killed(_work, items, _jobs):
        error = ToolchainError("a worker was killed by SIGKILL")
        yield from (Finished(index=index, error=error) for index in range(len(items)))

    report = run(options, runner=killed)
    assert {(o.state, o.ended.kind) for o in report.outcomes} == {(State.FAULT, "ToolchainError")}
