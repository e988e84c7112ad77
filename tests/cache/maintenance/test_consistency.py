import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cache.format.test_segment import BOTH, KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record, make_shape
from tunegate_cache.format import segment
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.records import TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.maintenance import history
from tunegate_cache.maintenance.consistency import Flaw, flaws
from tunegate_cache.maintenance.copying import pull, push
from tunegate_cache.maintenance.explanation import Explanation, explain, read_group
from tunegate_cache.maintenance.summary import GroupSummary, summary
from tunegate_cache.protocol import group_state
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3, S3Store
from tunegate_cache.stores.store import ObjectStore


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A cache with two segments, gathered by a compaction, and one beside them."""
    place = Place(tmp_path)
    for record in numbered(2):
        place.publish(record)
    place.compact()
    place.publish(make_record("later"))
    return place


def spoil(place: Place, kind: str, body: bytes | None = b"garbage") -> str:
    """The first object of this kind gets another body, or is deleted."""
    name = next(name for name in place.store.names("") if f"/{kind}/" in name)
    place.store.delete(name)
    if body is not None:
        place.store.write(name, body)
    return name


def check(place: Place) -> list[Flaw]:
    return list(flaws(place.store, MAIN, NOBODY))


def kinds(place: Place) -> list[str]:
    return [flaw.kind for flaw in check(place)]


def test_a_sound_cache_has_no_flaw(place: Place) -> None:
    assert check(place) == []
    place.collect()
    assert check(place) == []


@pytest.mark.parametrize("body", [b"garbage", None])
@pytest.mark.parametrize("kind", ["pack", "idx"])
def test_an_unreadable_snapshot_is_told(place: Place, kind: str, body: bytes | None) -> None:
    spoil(place, kind, body)
    assert kinds(place) == ["snapshot"]


@pytest.mark.parametrize("body", [b"garbage", None])
def test_segments_that_only_a_broken_archive_held_are_a_broken_promise(
    place: Place, body: bytes | None
) -> None:
    spoil(place, "cold", body)
    assert kinds(place) == ["archive", "unarchived", "unarchived"]


def test_a_broken_segment_is_named(place: Place) -> None:
    name = spoil(place, "seg")
    (flaw,) = check(place)
    assert (flaw.kind, flaw.name) == ("segment", name)


def test_a_segment_that_nobody_trusted_has_signed_is_not_broken(place: Place) -> None:
    unsigned = list(flaws(place.store, MAIN, KEYS))
    assert [flaw.kind for flaw in unsigned] == ["head", "segment", "segment", "segment"]


def test_an_archive_that_no_head_refers_to_is_told(place: Place) -> None:
    before = place.store.read_pointer(MAIN.head)
    place.compact()
    place.store.move_pointer(MAIN.head, before.body, place.store.read_pointer(MAIN.head).tag)
    assert kinds(place) == ["orphan"]


@pytest.mark.parametrize("is_archived", [True, False])
def test_a_lost_head_is_told_wherever_it_is_missed(place: Place, is_archived: bool) -> None:
    place.store.delete(MAIN.head)
    if not is_archived:
        spoil(place, "cold", None)
    assert kinds(place) == ["head"]
    assert summary(place.store, MAIN, NOBODY).corrupt == 1
    copy = MemoryStore()
    pulled = pull(place.store, copy, MAIN, NOBODY)
    for done in (pulled, push(place.store, copy, "main", keys=NOBODY, signer=None)):
        assert "HEAD: HEAD is missing: no first compaction has ended" in done.problems[0]
    segments = {name for name in place.store.names("") if "/seg/" in name}
    assert segments == {*copy.names("")}  # a first compaction may not have ended
    signed = pull(place.store, MemoryStore(), MAIN, KEYS)
    assert (signed.objects, len(signed.problems)) == (0, 1)
    place.compact(rebuild=True)
    assert check(place) == []


ZONE = "main"


def test_the_latest_runs_come_back_oldest_first(bucket: S3Store) -> None:
    """A name dated in the future pushes out none."""
    for at in (3, 1, 2, 86_401_000):
        history.write_lines(bucket, f"{history.prefix(ZONE)}{at:013d}", b"run %d\n" % at)
    assert [*history.recent_history(bucket, ZONE, 2, 0).values()] == [b"run 2\n", b"run 3\n"]
    assert history.recent_history(bucket, "rel", 2, 0) == {}


def test_the_same_run_is_remembered_once(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    start = f"{history.prefix(ZONE)}{1:013d}"
    name = history.write_lines(store, start, b"x\n")
    assert history.write_lines(store, start, b"x\n") == name
    assert history.recent_history(store, ZONE, 10, 1) == {name: b"x\n"}


def test_more_than_a_run_can_have_is_refused() -> None:
    with pytest.raises(history.LinesTooLongError, match="at most"):
        history.history_name(ZONE, b"x" * (history.MAX_LINES_BYTES + 1), milliseconds=1)


def test_lines_come_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    names = [history.write_lines(store, f"ms1/z/a/{n}", b"%d\n" % n) for n in (1, 2)]
    expected = [(names[1], b"2\n"), (names[0], b"1\n")]
    assert list(history.read_lines(store, names[::-1]).items()) == expected


def test_what_is_gone_too_large_or_not_what_its_name_says_is_left_out(bucket: S3Store) -> None:
    large = b"y" * (history.MAX_LINES_BYTES + 1)
    lies = {
        f"ms1/z/a/1-{'0' * 64}.jsonl": b"not its digest\n",
        f"ms1/z/a/2-{hashlib.sha256(large).hexdigest()}.jsonl": large,
        "ms1/z/a/notes.txt": b"anything",
        f"ms1/z/a/4-{'0' * 64}.jsonl": b"",
    }
    for name, body in lies.items():
        bucket.write(name, body)
    true = history.write_lines(bucket, "ms1/z/a/3", b"true\n")
    assert history.read_lines(bucket, [*lies, "ms1/z/a/gone.jsonl", true]) == {true: b"true\n"}


@pytest.fixture(params=["segments", "a snapshot"])
def explanation_place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A cache with one record of `w` and a failure of `f`, before or after a compaction."""
    explanation_place = Place(tmp_path)
    explanation_place.publish(make_record(), make_record("f", status="compile", run_nanoseconds=()))
    explanation_place.publish(make_record("default", template="", decisions=()))
    if request.param == "a snapshot":
        explanation_place.archive()
    return explanation_place


def explained(
    explanation_place: Place,
    key: WorkloadKey,
    shape: WorkloadShape | None = None,
    *,
    zones: Sequence[str] = ("main",),
    own: Sequence[str] = (),
) -> Explanation:
    store = explanation_place.store
    groups = [read_group(store, group, NOBODY, key.workload) for group in group_state.groups(store)]
    return explain(groups, zones, key, shape or make_shape("another"), own=own)


def test_what_is_there_is_found(explanation_place: Place) -> None:
    for name in ("w", "default"):
        found = explained(explanation_place, make_key(name))
        assert (found.differs, found.detail) == ("nothing", "there are records in zone main")


def test_a_task_of_which_only_failures_are_known_says_so(explanation_place: Place) -> None:
    assert explained(explanation_place, make_key("f")).differs == "status"


def test_a_record_whose_key_is_trusted_no_longer_is_not_called_there(tmp_path: Path) -> None:
    place, key = Place(tmp_path, BOTH, OURS), make_key()
    place.publish(make_record(), signer=THEIRS)
    place.compact()
    for keys, differs in ((BOTH, "nothing"), (KEYS, "skeleton")):
        group = read_group(place.store, MAIN, keys, key.workload)
        assert explain([group], ["main"], key, make_shape()).differs == differs


def test_records_in_a_zone_that_is_not_read_are_named_with_it(explanation_place: Place) -> None:
    found = explained(explanation_place, make_key(), zones=("team", "else"))
    assert found.differs == "zone"
    assert found.detail == "the records are in zone main; this run reads team, else"


def test_claims_of_the_own_zone_are_not_trusted(explanation_place: Place) -> None:
    found = explained(explanation_place, make_key(), zones=("team",), own=("main",))
    assert found.differs == "trust"
    assert (
        explained(explanation_place, make_key("f"), zones=("team",), own=("main",)).differs
        == "zone"
    )


def test_records_for_another_target_are_named_with_it(explanation_place: Place) -> None:
    found = explained(explanation_place, make_key(target=hexdigest("another target")))
    assert found.differs == "target"
    assert hexdigest("target")[:16] in found.detail


def test_the_nearest_shape_is_named_with_the_extents_that_differ(explanation_place: Place) -> None:
    found = explained(explanation_place, make_key("new"), make_shape(extents=(64, 32)))
    assert found.differs == "extents"
    assert found.neighbour is not None
    assert (found.neighbour.workload, found.neighbour.extents) == (hexdigest("w"), (64, 64))
    assert "32" in found.detail


def test_an_operation_that_was_never_recorded_has_no_neighbour(explanation_place: Place) -> None:
    found = explained(explanation_place, make_key("new"))
    assert (found.differs, found.neighbour) == ("skeleton", None)


# What a store holds, counted.


def put(store: ObjectStore, zone: str, *records: TuningRecord, named: str = "") -> int:
    body = segment.pack_segment(records)
    name = segment_name(
        zone,
        TARGET,
        milliseconds=len(records),
        writer="0" * 8,
        digest=named or segment.segment_digest(body),
    )
    store.write(name.name, body)
    return len(body)


def test_records_are_counted_by_zone_and_target() -> None:
    store = MemoryStore()
    failed = make_record("c", status="timeout", run_nanoseconds=())
    size = put(store, "main", make_record("a"), make_record("b"), failed)
    size += put(store, "main", make_record("a", run_nanoseconds=(0,)))
    size += put(store, "main", make_record("a"), make_record("a"), named=hexdigest("x"))
    put(store, "dev/me", make_record("a"))
    store.write("ms1/z/main/g/other/HEAD", b"{}")
    dev, main = (summary(store, group, NOBODY) for group in group_state.groups(store))
    assert (dev.zone, dev.records) == ("dev/me", 1)
    assert main == GroupSummary(
        zone="main",
        target=TARGET[:16],
        version=0,
        segments=3,
        archived=0,
        records=3,
        workloads=3,
        devices=("cpu",),
        failures=1,
        refused=1,
        corrupt=1,
        size_bytes=size,
    )


PRICES = S3.usd_per_1000_requests or {}
