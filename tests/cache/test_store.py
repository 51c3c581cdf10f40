"""The store holds whole objects, survives races, NFS and full disks, and compiles once."""

import errno
import os
from multiprocessing import get_context
from pathlib import Path

import pytest

from kernelpack.cache.frame import frame
from kernelpack.cache.store import PATIENCE_S, Store
from kernelpack.errors import CacheError, CompileError
from tests.fakes.disk import FakeDisk

KEY = "ab" + 62 * "0"
SPAWN = get_context("spawn")


def files(root: Path, folder: str) -> list[Path]:
    return [path for path in (root / folder).rglob("*") if path.is_file()]


def object_path(root: Path) -> Path:
    return root / "objects" / "ab" / KEY


def with_winner(root: Path, data: bytes) -> Path:
    """A root where another process has published already."""
    Store(root).put(KEY, data)
    return root


def test_nothing_is_absent(tmp_path):
    """A key that was never put is absent, and asking creates nothing."""
    assert Store(tmp_path / "cache").get(KEY) is None
    assert not (tmp_path / "cache").exists()


def test_put_then_get(tmp_path):
    """What was put comes back."""
    Store(tmp_path).put(KEY, b"data")
    assert Store(tmp_path).get(KEY) == b"data"


def test_put_leaves_no_temporary_file(tmp_path):
    """Publishing leaves the object and nothing else."""
    Store(tmp_path).put(KEY, b"data")
    assert files(tmp_path, ".") == [object_path(tmp_path)]


def test_second_put_returns_the_winners_bytes(tmp_path):
    """Whoever comes second gets what the first one published."""
    Store(tmp_path).put(KEY, b"first")
    assert Store(tmp_path).put(KEY, b"second") == b"first"


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EBUSY, errno.ENOTEMPTY])
@pytest.mark.parametrize("late", [errno.ENOENT, errno.ESTALE])
def test_lost_race_on_nfs(tmp_path, code, late):
    """A taken name is success with the winner's bytes, also if NFS shows them late."""
    disk = FakeDisk({"link": [code], "read": [late, late, 0]})
    assert Store(with_winner(tmp_path, b"winner"), disk).put(KEY, b"loser") == b"winner"
    assert files(tmp_path, "temporary") == []


def test_winner_that_never_shows(tmp_path):
    """After 5 s of ENOENT the error names the path."""
    disk = FakeDisk({"link": [errno.EEXIST], "read": [errno.ENOENT]})
    with pytest.raises(CacheError) as caught:
        Store(tmp_path, disk).put(KEY, b"data")
    assert caught.value.where == str(object_path(tmp_path))
    assert PATIENCE_S <= disk.now() <= PATIENCE_S + 1


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOENT, errno.ESTALE])
def test_rename_where_links_fail(tmp_path, code):
    """A file system without links, or an NFS client that lost one, is published to by rename."""
    assert Store(tmp_path, FakeDisk({"link": [code]})).put(KEY, b"data") == b"data"
    assert Store(tmp_path).get(KEY) == b"data"


def test_stale_handle_is_read_again(tmp_path):
    """ESTALE on a file that is there is not the end."""
    disk = FakeDisk({"read": [errno.ESTALE, 0]})
    assert Store(with_winner(tmp_path, b"data"), disk).get(KEY) == b"data"


@pytest.mark.parametrize(
    "damaged",
    [b"", frame(KEY, b"data")[:-1], frame(KEY, b"date")[:-4] + b"data", frame("cd", b"data")],
    ids=["empty", "truncated", "flipped", "foreign"],
)
def test_damage_is_a_miss(tmp_path, damaged):
    """A damaged object is absent, is kept aside, and can be put again."""
    with_winner(tmp_path, b"data")
    object_path(tmp_path).write_bytes(damaged)
    assert Store(tmp_path).get(KEY) is None
    assert [path.read_bytes() for path in files(tmp_path, "quarantine")] == [damaged]
    assert Store(tmp_path).put(KEY, b"again") == b"again"


STRANGERS = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "link to nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_what_is_no_object(tmp_path, name):
    """What has an object's name and is no file is set aside, waits for nobody, and heals."""
    object_path(tmp_path).parent.mkdir(parents=True)
    STRANGERS[name](object_path(tmp_path))
    assert Store(tmp_path).make_once(KEY, lambda: b"data") == b"data"
    assert Store(tmp_path).get(KEY) == b"data"


def test_what_is_no_note(tmp_path):
    """A note's name with a FIFO behind it is not a note; writing one replaces it."""
    (tmp_path / "notes").mkdir()
    os.mkfifo(tmp_path / "notes" / "n")
    assert Store(tmp_path).recall("n") is None
    Store(tmp_path).note("n", b"data")
    assert Store(tmp_path).recall("n") == b"data"


def test_damaged_winner_is_replaced(tmp_path):
    """Losing a race against a damaged file publishes after all."""
    with_winner(tmp_path, b"data")
    object_path(tmp_path).write_bytes(b"damaged")
    assert Store(tmp_path).put(KEY, b"mine") == b"mine"
    assert Store(tmp_path).get(KEY) == b"mine"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EDQUOT, "disk is full"),
        (errno.EROFS, "cannot be used"),
        (errno.EACCES, "cannot be used"),
        (errno.EIO, "cannot be used"),
    ],
)
def test_failed_write_is_named(tmp_path, code, says):
    """A write that fails names the path and the way out, and leaves nothing half-written."""
    with pytest.raises(CacheError, match=says) as caught:
        Store(tmp_path, FakeDisk({"write": [code]})).put(KEY, b"data")
    assert caught.value.where == str(object_path(tmp_path))
    assert "KERNELPACK_CACHE_DIR" in caught.value.hint
    assert files(tmp_path, ".") == []


def test_unreadable_object_is_named(tmp_path):
    """An object that is there and cannot be read is an error, not a miss."""
    disk = FakeDisk({"read": [errno.EIO]})
    with pytest.raises(CacheError, match="cannot be used"):
        Store(with_winner(tmp_path, b"data"), disk).get(KEY)


def test_root_that_is_a_file_is_named(tmp_path):
    """A root that cannot be a folder is named, also by a lock."""
    root = tmp_path / "cache"
    root.write_text("a file")
    with pytest.raises(CacheError, match="cannot be used"), Store(root).lock(KEY):
        pass


def test_notes_are_replaced(tmp_path):
    """A note holds what was written last."""
    store = Store(tmp_path)
    store.note("name", b"old")
    store.note("name", b"new")
    assert store.recall("name") == b"new"
    assert files(tmp_path, "temporary") == []


def test_missing_or_damaged_note_is_none(tmp_path):
    """A note that says nothing whole is not a note."""
    Store(tmp_path).note("name", b"data")
    (tmp_path / "notes" / "name").write_bytes(b"damaged")
    assert Store(tmp_path).recall("name") is None
    assert Store(tmp_path).recall("other") is None


def test_prepare_tells_of_a_folder_that_cannot_be_written(tmp_path):
    """A cache that cannot be written is known before anything is compiled."""
    with pytest.raises(CacheError, match="cannot be used"):
        Store(tmp_path, FakeDisk({"write": [errno.EROFS]})).prepare()
    assert files(tmp_path, ".") == []


def test_a_folder_that_cannot_be_made():
    """Where no folder can be made, nothing was lost."""
    with pytest.raises(
        CacheError, match=r"the cache's folder cannot be made \(No such file"
    ) as error:
        Store(Path("/proc/nope")).prepare()
    assert error.value.where.startswith("/proc/nope/")


def test_prepare_removes_what_was_abandoned(tmp_path):
    """A temporary file a day old has lost its writer; a young one may have one."""
    (tmp_path / "temporary").mkdir()
    old, young = tmp_path / "temporary" / "old", tmp_path / "temporary" / "young"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    Store(tmp_path).prepare()
    assert files(tmp_path, "temporary") == [young]


def test_make_once_makes_what_is_absent(tmp_path):
    """An absent object is made and published."""
    assert Store(tmp_path).make_once(KEY, lambda: b"made") == b"made"
    assert Store(tmp_path).get(KEY) == b"made"


def test_make_once_makes_nothing_that_is_there(tmp_path):
    """A held object is not made again."""
    assert Store(with_winner(tmp_path, b"held")).make_once(KEY, lambda: 1 / 0) == b"held"


def test_make_once_passes_the_failure_on(tmp_path):
    """A maker's error is the caller's, and the next one may try."""
    with pytest.raises(CompileError, match="stderr of the compiler"):
        Store(tmp_path).make_once(KEY, lambda: _fail("stderr of the compiler"))
    assert Store(tmp_path).make_once(KEY, lambda: b"made") == b"made"


def _fail(what: str) -> bytes:
    raise CompileError(what)


def _start_cold(root: Path, barrier, index: int, answers) -> None:
    """One of many processes: make the object once all have started."""
    barrier.wait()
    try:
        answers.put((index, Store(root).make_once(KEY, lambda: _compile_once(root))))
    except CompileError as error:
        answers.put((index, error))


def _compile_once(root: Path) -> bytes:
    """A compiler that fails the first time it is called, and says how often it was called."""
    (root / "calls").mkdir(exist_ok=True)
    count = len(list((root / "calls").iterdir()))
    (root / "calls" / str(count)).touch(exist_ok=False)
    return _fail("no register left") if count == 0 else b"object"


@pytest.fixture(scope="module")
def cold_start(tmp_path_factory):
    """The answers of 16 processes that ask an empty store for one object; the first maker fails."""
    root = tmp_path_factory.mktemp("cold")
    barrier, answers = SPAWN.Barrier(16), SPAWN.Queue()
    processes = [
        SPAWN.Process(target=_start_cold, args=(root, barrier, i, answers)) for i in range(16)
    ]
    for process in processes:
        process.start()
    results = [answers.get(timeout=60)[1] for _ in processes]
    for process in processes:
        process.join()
    return root, results


def test_cold_start_makes_once(cold_start):
    """One failure and one success: every other process waits for the object."""
    root, _ = cold_start
    assert len(list((root / "calls").iterdir())) == 2


def test_cold_start_serves_all_others(cold_start):
    """All processes but the failed one get the same bytes."""
    _, results = cold_start
    assert results.count(b"object") == 15


def test_cold_start_reports_the_failure(cold_start):
    """The process whose compiler failed says what the compiler said."""
    _, results = cold_start
    assert [str(r) for r in results if isinstance(r, CompileError)] == ["no register left"]


def test_cold_start_leaves_nothing(cold_start):
    """No temporary file outlives the race."""
    root, _ = cold_start
    assert files(root, "temporary") == []
