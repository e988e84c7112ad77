"""Compaction and collection on the real code: what was acknowledged stays readable, always."""

import itertools
from pathlib import Path

import msgspec
import pytest

from tests.cache.format.test_segment import BOTH, KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.present import present
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format import head as heads
from tunegate_cache.format.records import ExactHit, Toolchain, TransferHit
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.maintenance.consistency import flaws
from tunegate_cache.maintenance.copying import pull
from tunegate_cache.maintenance.summary import summary
from tunegate_cache.protocol import archive, group_reader, group_state
from tunegate_cache.protocol.group_state import current_head, listing
from tunegate_cache.protocol.hot_records import TOOLCHAINS
from tunegate_cache.protocol.target_requests import MISDATED
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.tuning_cache import Seconds
from tunegate_cache.stores.memory import MemoryStore


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_everything_is_found_after_compaction_and_collection(place: Place) -> None:
    for record in numbered(5):
        place.publish(record)
    done = place.compact()
    assert (done.status, done.segments, done.workloads, done.problems) == ("compacted", 5, 5, ())
    assert place.compact().status == "nothing new"
    assert place.collect(dry_run=True).segments == place.objects("seg") == 5
    assert place.collect().segments == 5
    assert place.compact().status == "nothing new"
    assert place.objects("seg") == 0
    assert [place.best(f"w{n}") for n in range(5)] == numbered(5)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_date_to_come_hides_nothing_and_escapes_no_revocation(
    place: Place, is_compacted: bool
) -> None:
    """A clock was ahead, or somebody wants to be the latest for ever."""
    lie, real = make_record(measured_at=2**53), make_record("v")
    toolchains = [Toolchain(tvm=f"9.{number}", ffi="") for number in range(TOOLCHAINS)]
    place.publish(lie, *(make_record("v", measured_at=2**53, toolchain=t) for t in toolchains))
    place.publish(make_record(status="wrong", run_nanoseconds=()), real)
    if is_compacted:
        assert place.compact().problems == (MISDATED,)
        place.collect()
    cache = place.cache()
    found = cache.lookup([(make_key(name), make_shape()) for name in ("w", "v")])
    assert not isinstance(found[make_key()], ExactHit)
    hit = found[make_key("v")]
    assert isinstance(hit, ExactHit)
    assert real in hit.records
    assert cache.statistics.notes == (f"cache: {MISDATED}",)
    place.compact([Revocation(until=1)])
    hit = place.cache().lookup([(make_key("v"), make_shape())])[make_key("v")]
    assert hit == ExactHit((real,))


def test_segments_of_a_time_to_come_are_read_last(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_reader, "_MAX_FRESH", 1)
    ahead = cache_over(place.store, tmp_path, milliseconds=lambda: 9_999_999_999_999)
    assert ahead.publish([make_record("lie")])
    place.publish(make_record())
    assert place.best() == make_record()


def test_new_segments_are_merged_with_the_snapshot_before(place: Place) -> None:
    slow = make_record(run_nanoseconds=(9_000_000,))
    fast = make_record(run_nanoseconds=(1_000_000,), decisions=((3, (8, 8)), (5, (1,))))
    place.archive(slow)
    place.publish(fast)
    assert place.best() == fast
    place.archive()
    key = make_key()
    assert place.cache().lookup([(key, make_shape())])[key] == ExactHit((fast, slow))


def test_the_nearest_shapes_come_from_the_snapshot_too(place: Place) -> None:
    near = make_record("near", shape=make_shape(extents=(64, 128)))
    far = make_record("far", shape=make_shape(extents=(64, 4096)))
    place.archive(near, far, make_record("other", shape=make_shape("other")))
    key = make_key("new")
    hit = place.cache().lookup([(key, make_shape(extents=(64, 64)))])[key]
    assert isinstance(hit, TransferHit)
    assert hit.records == (near, far)


def test_a_look_up_of_one_task_reads_few_objects(place: Place) -> None:
    for first in range(0, 300, 30):
        place.publish(*numbered(30, first))
    place.archive()
    cache = place.cache()
    key = make_key("w7")
    assert isinstance(cache.lookup([(key, make_shape())])[key], ExactHit)
    assert cache.statistics.requests == {"list": 1, "get": 3}  # HEAD, the index, one block


def test_only_the_best_and_the_latest_failures_are_hot_and_all_stay_archived(place: Place) -> None:
    tried = [
        make_record(run_nanoseconds=(1000 + n,), decisions=((3, (n + 1, 1)),)) for n in range(50)
    ]
    place.archive(*tried, make_record(template="", decisions=(), run_nanoseconds=(10**9,)))
    key = make_key()
    hit = place.cache().lookup([(key, make_shape())])[key]
    assert isinstance(hit, ExactHit)
    assert hit.records[:8] == tuple(tried[:8])
    assert place.compact(rebuild=True).records == 51


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_lost_head_is_made_anew_from_what_stands_there(place: Place, is_deleted: bool) -> None:
    """Machines that have seen it believe the new one; or it names more than upkeep may follow."""
    for name in "xya":
        place.archive(make_record(name))
    assert place.best("a") == make_record("a")
    place.publish(make_record("b"))
    head = present(current_head(place.store, MAIN, NOBODY).head)
    place.store.delete(MAIN.head)
    if not is_deleted:
        many = msgspec.structs.replace(head, archives=("c" * 64,) * 10**5)
        place.store.move_pointer(MAIN.head, heads.encode_head(many, MAIN, None), None)
        cache = place.cache()
        found = cache.lookup([(make_key(name), make_shape()) for name in "ab"])
        assert isinstance(found[make_key("b")], ExactHit)
        assert not isinstance(found[make_key("a")], ExactHit)
        assert "damaged: it names more than" in cache.statistics.notes[0]
    done = place.compact()
    assert (done.status, len(done.problems)) == ("compacted", 1)
    assert all(problem.endswith("; repeat revocations") for problem in done.problems)
    assert (place.best("a"), place.best("b")) == (make_record("a"), make_record("b"))
    assert place.compact().problems == ()


@pytest.mark.parametrize("version", [1_795_100_000, 2**53 - 1, 2**53])
def test_a_head_that_counts_to_the_end_is_counted_anew(place: Place, version: int) -> None:
    """Machines that have seen it read the next ones, whose dates and numbers are of today."""
    place.archive(make_record("a"))
    old = place.store.read_pointer(MAIN.head)
    head = heads.decode_head(old.body, MAIN, NOBODY)
    late = msgspec.structs.replace(head.snapshot, at=2**53)
    last = msgspec.structs.replace(head, version=version, snapshot=late)
    place.store.move_pointer(MAIN.head, heads.encode_head(last, MAIN, None), old.tag)
    assert place.best("a") == make_record("a")
    place.archive(make_record("b"))
    assert place.best("b") == make_record("b")
    place.publish(make_record("c"))
    done = place.compact()
    assert (done.status, done.problems) == ("compacted", ())
    assert place.seconds <= done.version <= place.seconds + 2
    assert [place.best(name) for name in "abc"] == [make_record(name) for name in "abc"]
    kept = present(current_head(place.store, MAIN, NOBODY).head).kept
    assert all(snapshot.at <= place.seconds for snapshot in kept)


def test_a_head_that_could_not_be_read_again_is_not_written(place: Place) -> None:
    place.archive(make_record("a"))
    done = place.compact([Revocation(run=str(n)) for n in range(2**16 + 1)])
    assert done.status == "refused"
    assert done.problems == (
        "nothing was written: HEAD is damaged: it names more than 65536 objects",
    )
    assert place.best("a") == make_record("a")


def test_a_record_of_another_target_of_the_group_hides_none(place: Place) -> None:
    """A group's name has the beginning of the target key alone."""
    twin = make_key(target=f"{TARGET[:16]}{'0' * 48}")
    place.archive(make_record())
    place.publish(*(make_record(key=twin, measured_at=1_790_000_000 + n) for n in range(2)))
    fast = (make_record(key=twin, run_nanoseconds=(1,), decisions=((n, (1,)),)) for n in range(9))
    place.archive(*fast)
    assert place.best() == make_record()


def test_a_snapshot_that_is_slow_to_read_ends_with_the_time(place: Place, tmp_path: Path) -> None:
    device = make_record().device
    devices = [msgspec.structs.replace(device, name=str(number)) for number in range(200)]
    place.archive(*(make_record(device=each) for each in devices))
    ticks = itertools.count()
    slow = cache_over(
        place.store, tmp_path, monotonic=lambda: float(next(ticks)), budget=Seconds(lookup=100.0)
    )
    slow.lookup([(make_key(), make_shape())])
    assert "cache: not everything could be read in time" in slow.statistics.notes


def test_an_archive_whose_head_was_overwritten_is_recovered(place: Place) -> None:
    """The store ignores conditions: two compactions ran, and the later HEAD knows only one."""
    place.publish(make_record("a"))
    place.compact()
    before = place.store.read_pointer(MAIN.head)
    place.archive(make_record("b"))
    place.store.move_pointer(MAIN.head, before.body, place.store.read_pointer(MAIN.head).tag)
    done = place.compact()
    assert (done.status, done.recovered) == ("compacted", 1)
    assert (place.best("a"), place.best("b")) == (make_record("a"), make_record("b"))


def test_its_own_archives_are_not_recovered(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the four segments is over the limit of an archive."""
    monkeypatch.setattr(archive, "MAX_ARCHIVE_BYTES", 1)
    for number in range(4):
        place.publish(make_record(f"w{number}"))
    done = place.compact()
    assert (done.segments, done.recovered) == (4, 0)
    assert place.objects("cold") == 4


@pytest.mark.parametrize("kind", ["pack", "idx", "cold"])
def test_a_damaged_object_costs_no_acknowledged_record_that_is_held_elsewhere(
    place: Place, kind: str
) -> None:
    place.archive(make_record("a"))
    damaged = next(name for name in place.store.names("") if f"/{kind}/" in name)
    place.store.delete(damaged)
    place.store.write(damaged, b"garbage")
    place.publish(make_record("b"))
    done = place.compact()
    assert done.status == "compacted"
    assert bool(done.problems) == (kind != "cold")
    assert place.best("b") == make_record("b")
    assert place.best("a") == make_record("a")


@pytest.mark.parametrize("revoke", [[], [Revocation(repository="other/x")]])
@pytest.mark.parametrize("body", [b"garbage", None])
def test_a_lost_archive_costs_no_record_whose_segment_stands(
    place: Place, revoke: list[Revocation], body: bytes | None
) -> None:
    place.archive(make_record("old"))
    (kept,) = listing(place.store, MAIN).archives
    place.publish(*numbered(2))
    place.compact()
    (lost,) = set(listing(place.store, MAIN).archives) - {kept}
    place.store.delete(lost)
    if body is not None:
        place.store.write(lost, body)
    done = place.compact(revoke, rebuild=not revoke)
    assert (done.segments, len(done.problems)) == (1, 1)
    assert [place.best(name) for name in ("old", "w0", "w1")] == [
        make_record("old"),
        *numbered(2),
    ]
    assert list(flaws(place.store, MAIN, NOBODY)) == []
    assert place.collect().segments == 1
    assert place.best("w1") == make_record("w1")


def test_what_only_the_snapshot_holds_outlives_every_rebuild(place: Place) -> None:
    """The archive is lost, and a collection has deleted its segments."""
    place.archive(make_record("a"), make_record("b"))
    place.store.delete(listing(place.store, MAIN).archives[0])
    for number in range(2):
        done = place.compact([Revocation(run=str(number))])
        assert (done.hidden, len(done.problems)) == (0, 1 - number)
        place.compact(rebuild=True)
        assert [place.best(name) for name in "ab"] == [make_record("a"), make_record("b")]
    assert list(flaws(place.store, MAIN, NOBODY)) == []
    assert place.compact([Revocation(until=2**40)]).hidden == 2
    assert place.best("a") is None


def test_a_pinned_snapshot_stays_for_a_month_after_its_head_was_lost(place: Place) -> None:
    place.archive(make_record("a"))
    pinned = MAIN.content(
        "idx", present(current_head(place.store, MAIN, NOBODY).head).snapshot.index
    )
    place.store.delete(MAIN.head)
    for day in range(32):
        assert (pinned in place.store.names("")) == (day < 31)
        place.archive(make_record(f"w{day}"))
        place.seconds += 24 * 3600
        place.collect(24 * 3600)


def test_a_kept_snapshot_that_is_damaged_is_told_and_dropped_by_a_repair(place: Place) -> None:
    """A copy says that it lacks it, and advises to check."""
    place.archive(make_record("a"))
    pack = listing(place.store, MAIN).packs[0]
    place.archive(make_record("b"))
    place.store.delete(pack)
    assert [flaw.kind for flaw in flaws(place.store, MAIN, NOBODY)] == ["snapshot"]
    place.compact(rebuild=True)
    assert list(flaws(place.store, MAIN, NOBODY)) == []
    assert pull(place.store, MemoryStore(), MAIN, NOBODY).problems == ()


def test_records_of_a_key_that_is_trusted_no_longer_do_not_count(tmp_path: Path) -> None:
    """The snapshot holds them, and its HEAD has a good signature."""
    place = Place(tmp_path, BOTH, OURS)
    fast = make_record(run_nanoseconds=(1,))
    place.publish(fast, signer=THEIRS)
    place.archive(make_record("b"))
    assert place.best() == fast
    place = place.with_keys(KEYS)
    assert (place.best(), place.best("b")) == (None, make_record("b"))
    assert summary(place.store, MAIN, KEYS).records == 1
    place.archive(make_record("c"))
    copy = pull(place.store, MemoryStore(), MAIN, KEYS)
    assert copy.problems == ()
    assert Place(tmp_path / "x", BOTH).with_store(place.store).best() is None


@pytest.mark.parametrize("is_collected", [False, True])
def test_the_next_best_comes_back_when_a_key_goes_and_two_lists_undo_nothing(
    tmp_path: Path, is_collected: bool
) -> None:
    """Only archives have it. The segments of the key stay where they are."""
    place = Place(tmp_path, BOTH, OURS)
    place.publish(make_record())
    place.publish(make_record(measured_at=1_700_000_100), signer=THEIRS)
    place.compact()
    if is_collected:
        place.collect()
    few, many = place.with_keys(KEYS), place.with_keys(BOTH)
    assert few.best() is None
    assert few.compact().status == "compacted"
    assert few.best() == make_record()
    head = present(current_head(place.store, MAIN, KEYS).head)
    assert head.keys == (OURS.public,)
    assert {name.file for name in listing(place.store, MAIN).segments} == set(head.covers)
    assert [p.compact().status for p in (many, few, many)] == ["nothing new"] * 3


def test_a_missing_archive_that_is_written_again_is_named(tmp_path: Path) -> None:
    """An orphan has its segments, and one that nobody trusts."""
    place, planted = Place(tmp_path / "zone", KEYS, OURS), Place(tmp_path / "planted")
    place.publish(make_record())
    (name,) = listing(place.store, MAIN).segments
    planted.store.write(name.name, place.store.read(name.name))
    planted.archive(make_record("bad"))
    place.archive()
    (lost,), (orphan,) = (listing(each.store, MAIN).archives for each in (place, planted))
    place.store.write(orphan, planted.store.read(orphan))
    place.store.delete(lost)
    place.compact(rebuild=True)
    head = present(current_head(place.store, MAIN, KEYS).head)
    assert [MAIN.content("cold", digest) for digest in head.archives] == [lost]
    assert list(flaws(place.store, MAIN, KEYS)) == []


def test_a_segment_that_cannot_be_read_either_is_not_covered(place: Place) -> None:
    for record in numbered(2):
        place.publish(record)
    place.compact()
    place.store.delete(listing(place.store, MAIN).archives[0])
    damaged = listing(place.store, MAIN).segments[0]
    place.store._objects[damaged.name] = b"garbage"
    place.compact(rebuild=True)
    head = present(current_head(place.store, MAIN, NOBODY).head)
    assert head.covers == (listing(place.store, MAIN).segments[1].file,)
    assert place.best("w1") == make_record("w1")


@pytest.mark.parametrize("kind", ["pack", "idx"])
def test_a_damaged_snapshot_is_a_counted_miss_until_it_is_made_anew(
    place: Place, kind: str
) -> None:
    place.archive(make_record())
    damaged = next(name for name in place.store.names("") if f"/{kind}/" in name)
    place.store.delete(damaged)
    place.store.write(damaged, b"garbage")
    assert place.best() is None
    assert place.compact(rebuild=True).status == "compacted"
    assert place.best() == make_record()


def test_a_head_of_a_later_version_is_left_alone(place: Place) -> None:
    place.publish(make_record())
    later = (
        b'{"head":{"v":9,"version":1,"parent":"","snapshot":{"version":1,"index":"","packs":[],'
        b'"at":0},"archives":[],"covers":[]}}'
    )
    place.store.move_pointer(MAIN.head, later, None)
    done = place.compact()
    assert done.status == "refused"
    assert "update tunegate" in done.problems[0]
    assert place.store.read_pointer(MAIN.head).body == later
    assert place.best() == make_record()


@pytest.mark.parametrize("is_signed", [True, False])
def test_an_older_head_than_one_that_was_seen_is_believed_where_nothing_is_signed(
    tmp_path: Path, is_signed: bool
) -> None:
    """A backup has an older one. That of a cache that was begun anew is later."""
    place = Place(tmp_path, KEYS, OURS) if is_signed else Place(tmp_path)
    place.publish(make_record("a"))
    place.compact()
    old = place.store.read_pointer(MAIN.head)
    place.publish(make_record("b"))
    place.compact()
    assert place.best("b") == make_record("b")
    place.store.move_pointer(MAIN.head, old.body, place.store.read_pointer(MAIN.head).tag)
    cache = place.cache()
    cache.lookup([(make_key("a"), make_shape())])
    notes = [note for note in cache.statistics.notes if "older than one seen before" in note]
    assert bool(notes) == is_signed
    for name in place.store.names(""):
        place.store.delete(name)
    place.publish(make_record("c"))
    place.compact()
    assert place.best("c") == make_record("c")


def test_a_pinned_build_reads_its_snapshot_and_nothing_later(place: Place, tmp_path: Path) -> None:
    place.publish(make_record("a"))
    place.compact()
    current = group_state.current_head(place.store, MAIN, NOBODY).head
    assert current is not None
    place.archive(make_record("b"))
    trust = Trust(pins={MAIN: current.snapshot.index})
    pinned = cache_over(place.store, tmp_path, mode="ro", trust=trust)
    found = pinned.lookup([(make_key(name), make_shape()) for name in ("a", "b")])
    assert isinstance(found[make_key("a")], ExactHit)
    assert not isinstance(found[make_key("b")], ExactHit)
    assert pinned.statistics.requests["list"] == 0


def test_a_collection_without_compaction_deletes_nothing(place: Place) -> None:
    place.publish(make_record())
    assert place.collect().segments == 0
    assert place.best() == make_record()


def test_snapshots_stay_for_pins_and_go_when_their_day_is_over(place: Place) -> None:
    for record in numbered(3):
        place.publish(record)
        place.compact()
        place.seconds += 40 * 24 * 3600
    assert place.objects("idx") == 3
    place.publish(make_record("last"))
    place.compact()
    assert place.collect(grace_seconds=0).others == 4
    assert place.objects("idx") == place.objects("pack") == 2
    assert [place.best(f"w{n}") for n in range(3)] == numbered(3)


def test_a_snapshot_that_was_current_until_now_stays_for_a_month(place: Place) -> None:
    """A build that pinned it yesterday reads it, though nothing new came for long before."""
    place.archive(make_record("a"))
    index = present(current_head(place.store, MAIN, NOBODY).head).snapshot.index
    place.seconds += 40 * 24 * 3600
    days = 0
    while MAIN.content("idx", index) in place.store.names(""):
        place.archive(make_record(f"w{days}"))
        place.seconds += 24 * 3600
        days += 1
    assert days == 31  # the last of these compactions finds it a month old


def test_a_segment_whose_archive_is_broken_stays_and_the_archive_is_told(place: Place) -> None:
    place.publish(make_record())
    place.compact()
    (archive,) = listing(place.store, MAIN).archives
    place.store.delete(archive)
    found = place.collect()
    assert (found.segments, found.others) == (0, 0)
    assert "it is missing" in found.problems[0]
    assert place.objects("seg") == 1


def test_a_segment_with_another_content_than_was_archived_stays(place: Place) -> None:
    place.publish(make_record("a"))
    place.compact()
    place.publish(make_record("b"))
    assert place.collect().segments == 1
    assert place.objects("seg") == 1


def test_a_head_that_is_not_trusted_deletes_nothing(place: Place) -> None:
    place.publish(make_record())
    place.compact()
    found = collect(place.store, MAIN, keys=KEYS, now=place.seconds, grace_seconds=0)
    assert (found.segments, found.others) == (0, 0)
    assert "trusted key" in found.problems[0]
    assert place.objects("seg") == 1


def test_what_is_unreferenced_goes_when_its_grace_is_over(place: Place) -> None:
    place.publish(make_record("a"))
    place.compact()
    for name in "bc":
        place.seconds += 40 * 24 * 3600
        place.publish(make_record(name))
        place.compact()
    place.seconds += 100
    assert place.collect(grace_seconds=101).others == 0
    assert place.collect(grace_seconds=100).others == 2
    assert place.objects("idx") == 2
