from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cache.format.test_segment import KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place
from tests.support.tuning_records import TARGET, make_key, make_shape
from tests.support.tuning_records import make_record as tuning_records_make_record
from tests.support.tuning_tasks import make_record
from tunegate_cache.format import head as heads
from tunegate_cache.format.how_built import (
    MOST_DECISIONS,
    MOST_NODES,
    HowBuilt,
    decisions_of,
    how_built,
    mark_of,
)
from tunegate_cache.format.names import Group, group_of
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import Decision, Miss, Provenance, TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.uploads import WriteAhead

DAY = 24 * 3600
NOW = 1000 * DAY + DAY // 2


def snapshot(version: int, at: int = 0) -> heads.Snapshot:
    return heads.Snapshot(
        version=version, index=f"{version:064x}", packs=("a" * 64, "b" * 64), at=at
    )


HEAD = heads.Head(
    version=3,
    parent="p",
    snapshot=snapshot(3),
    archives=("c" * 64,),
    covers=("a segment",),
    kept=(snapshot(2),),
    unreferenced=(heads.Unreferenced("gone", 7),),
)


def test_a_head_is_what_was_written_with_and_without_a_signature() -> None:
    assert heads.decode_head(heads.encode_head(HEAD, MAIN, None), MAIN, NOBODY) == HEAD
    assert heads.decode_head(heads.encode_head(HEAD, MAIN, OURS), MAIN, KEYS) == HEAD


@pytest.mark.parametrize(
    ("group", "signer"), [(MAIN, None), (MAIN, THEIRS), (group_of("team", TARGET), OURS)]
)
def test_a_head_that_nobody_trusted_has_signed_for_this_group_is_refused(
    group: Group, signer: Signer | None
) -> None:
    body = heads.encode_head(HEAD, group, signer)
    with pytest.raises(heads.CorruptHeadError, match="not signed by a trusted key"):
        heads.decode_head(body, MAIN, KEYS)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{}", b"[" * 5000, b"\xff", b'{"head":{},"signature":"zz"}', b"null"),
        heads.encode_head(msgspec.structs.replace(HEAD, keys=("ed25519:x",)), MAIN, None),
    ],
)
def test_what_is_no_head_is_refused(body: bytes) -> None:
    with pytest.raises(heads.CorruptHeadError, match="cannot be read"):
        heads.decode_head(body, MAIN, NOBODY)


def test_a_later_version_is_told_apart_because_it_must_be_left_alone() -> None:
    later = heads.encode_head(msgspec.structs.replace(HEAD, v=2), MAIN, None)
    with pytest.raises(heads.LaterHeadError, match="update tunegate"):
        heads.decode_head(later, MAIN, NOBODY)


@pytest.mark.parametrize("left", [b"", b"garbage", b"older"])
def test_what_was_revoked_counts_no_more_when_the_head_is_lost(tmp_path: Path, left: bytes) -> None:
    place = Place(tmp_path, KEYS, OURS)
    place.publish(tuning_records_make_record())
    place.compact()
    older = place.store.read_pointer(MAIN.head).body
    place.compact([Revocation(until=2**40)])
    assert place.best() is None
    (waiting,) = group_state.listing(place.store, MAIN).segments
    body = place.store.read(waiting.name)
    place.store.delete(MAIN.head)
    if left:
        place.store.write(MAIN.head, older if left == b"older" else left)
    assert WriteAhead(tmp_path / "wal").keep(waiting, body)
    cache = place.cache()
    hit = cache.lookup([(make_key(), make_shape())])[make_key()]
    assert hit == Miss("corrupt")
    assert "what it may have revoked is not read" in cache.statistics.notes[-1]


def test_everything_that_a_head_names_is_referenced() -> None:
    referenced = list(HEAD.referenced_objects(MAIN))
    assert MAIN.content("idx", snapshot(2).index) in referenced
    assert MAIN.content("idx", snapshot(3).index) in referenced
    assert MAIN.content("cold", "c" * 64) in referenced
    assert referenced.count(MAIN.content("pack", "a" * 64)) == 2
    assert len(referenced) == 7


def test_of_a_day_that_is_over_the_last_snapshot_is_kept() -> None:
    ages = {0: 50 * DAY, 1: 40 * DAY, 2: 5 * DAY + 60, 3: 5 * DAY, 4: 60, 5: 30, 6: -90 * DAY}
    every = tuple(snapshot(version, NOW - age) for version, age in ages.items())
    kept = heads.kept_for_pins(every, NOW)
    assert [each.version for each in kept] == [1, 3, 4, 5, 6]  # 1 was current until 5 days ago
    assert kept[-1].at == NOW


@given(st.lists(st.integers(0, 60 * DAY), max_size=40))
def test_what_is_kept_for_pins_is_recent_ordered_and_little(ages: list[int]) -> None:
    every = tuple(snapshot(n, NOW - age) for n, age in enumerate(sorted(ages, reverse=True)))
    kept = heads.kept_for_pins(every, NOW)
    versions = [each.version for each in kept]
    assert versions == sorted(set(versions))
    assert len([each for each in kept if NOW - each.at > 30 * DAY]) <= 1
    assert {each.version for each in every[-1:]} <= set(versions)
    assert {each.version for each in every if NOW - each.at <= DAY} <= set(versions)
    assert len([each for each in kept if NOW - each.at > DAY]) <= 33


PLACES = st.sets(st.integers(0, MOST_NODES - 1), max_size=40)
DIGESTS = st.sets(st.text("0123456789abcdef", min_size=64, max_size=64), max_size=40)


@given(PLACES, DIGESTS)
def test_what_is_written_is_read_again_out_of_a_record(places: set[int], digests: set[str]) -> None:
    marks = {mark_of(digest) for digest in digests}
    how = HowBuilt(compiled=tuple(sorted(places)), kept=tuple(sorted(marks)))
    decisions = decisions_of(how)
    assert decisions is not None
    record = msgspec.structs.replace(make_record(), decisions=decisions)
    read = decode_records(encode_record(record))
    assert isinstance(read, TuningRecord)
    assert how_built(read.decisions) == (how if places or digests else None)


def test_neighbours_are_one_decision() -> None:
    assert decisions_of(HowBuilt(compiled=(4, 5, 6, 9))) == ((4, (3,)), (9, (1,)))


def test_more_than_a_record_has_room_for_is_not_remembered() -> None:
    assert decisions_of(HowBuilt(compiled=tuple(range(0, 2 * MOST_DECISIONS, 2)))) is not None
    assert decisions_of(HowBuilt(compiled=tuple(range(0, 2 * MOST_DECISIONS + 2, 2)))) is None


@pytest.mark.parametrize(
    "decisions",
    [
        (),
        ((0, (2**53,)),),
        ((MOST_NODES, (1,)),),
        ((0, (3,)), (2, (1,))),
        ((0, (0,)),),
        ((0, (1, 1)),),
        ((mark_of("a" * 64), (1,)),),
    ],
)
def test_decisions_that_no_build_makes_say_nothing(decisions: tuple[Decision, ...]) -> None:
    assert how_built(decisions) is None


# What is not believed: revoked records, unsigned segments.


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


REVOCATIONS: list[tuple[Callable[[TuningRecord], Revocation], str]] = [
    (lambda r: Revocation(repository=r.source.repository), "by repository"),
    (lambda r: Revocation(run=r.source.run), "by run"),
    (lambda r: Revocation(since=r.measured_at, until=r.measured_at), "by time"),
]


@pytest.mark.parametrize(("rule", "how"), REVOCATIONS, ids=[how for _, how in REVOCATIONS])
def test_what_is_revoked_is_served_no_more_and_the_next_best_is(
    place: Place, rule: Callable[[TuningRecord], Revocation], how: str
) -> None:
    good = tuning_records_make_record(run_nanoseconds=(2000,))
    bad = tuning_records_make_record(
        run_nanoseconds=(1000,),
        decisions=((3, (2, 32)),),
        measured_at=1_790_000_000,
        source=Provenance(repository="evil/x", run="666"),
    )
    place.publish(good, bad)
    place.compact()
    assert place.best() == bad
    assert place.compact([rule(bad)]).status == "compacted"
    assert place.best() == good
    place.publish(bad)
    assert place.best() == good


def test_a_revoked_key_takes_all_that_it_signed_with_it(tmp_path: Path) -> None:
    place = Place(tmp_path, TrustedKeys({"main": (OURS.public, THEIRS.public)}), OURS)
    place.publish(tuning_records_make_record("ours"))
    place.publish(tuning_records_make_record("theirs"), signer=THEIRS)
    place.archive()
    assert place.best("theirs") == tuning_records_make_record("theirs")
    place.compact([Revocation(key=THEIRS.key)])
    assert place.best("theirs") is None
    assert place.best("ours") == tuning_records_make_record("ours")


def test_a_zone_with_keys_believes_nothing_unsigned(tmp_path: Path) -> None:
    place = Place(tmp_path, TrustedKeys({"main": (OURS.public,)}), OURS)
    place.publish(tuning_records_make_record("a"))
    stranger = Place(tmp_path / "stranger")
    stranger.store = place.store
    stranger.publish(tuning_records_make_record("b"))
    assert (place.best("a"), place.best("b")) == (tuning_records_make_record("a"), None)
    done = place.compact()
    assert done.segments == 1
    assert any("not signed" in problem for problem in done.problems)
    assert (place.best("a"), place.best("b")) == (tuning_records_make_record("a"), None)
    assert place.compact().status == "nothing new"
    head = group_state.current_head(place.store, MAIN, TrustedKeys({"main": (THEIRS.public,)}))
    assert head.problem == "HEAD is not signed by a trusted key"
