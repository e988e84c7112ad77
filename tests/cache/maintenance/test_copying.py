"""Copies of a cache: what a pull and a push bring, leave behind and tell."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cache.format.test_segment import BOTH, KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.present import present
from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format import segment
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import Provenance
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.maintenance.consistency import flaws
from tunegate_cache.maintenance.copying import pull, push
from tunegate_cache.protocol.group_state import current_head, listing
from tunegate_cache.stores.memory import MemoryStore


@pytest.fixture
def source(tmp_path: Path) -> Place:
    """A cache with two records in an archive, and one in a segment of its own."""
    place = Place(tmp_path / "source")
    for record in numbered(2):
        place.publish(record)
    place.archive()
    place.publish(make_record("later"))
    return place


@pytest.fixture
def destination(tmp_path: Path) -> Place:
    return Place(tmp_path / "destination")


def test_a_pulled_group_answers_as_its_source_does(source: Place, destination: Place) -> None:
    copied = pull(source.store, destination.store, MAIN, NOBODY)
    assert copied.problems == ()
    assert copied.objects == 4
    assert copied.size_bytes == sum(
        len(destination.store.read(name))
        for name in destination.store.names("")
        if "HEAD" not in name
    )
    for name in ("w0", "w1", "later"):
        assert destination.best(name) == make_record(name)


def test_pulling_again_brings_news_and_moves_the_head(source: Place, destination: Place) -> None:
    pull(source.store, destination.store, MAIN, NOBODY)
    source.publish(make_record("newest"))
    source.compact()
    pull(source.store, destination.store, MAIN, NOBODY)
    assert destination.best("newest") == make_record("newest")
    assert (
        destination.store.read_pointer(MAIN.head).body == source.store.read_pointer(MAIN.head).body
    )


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_copy_that_has_worked_on_its_own_keeps_what_it_has(
    source: Place, destination: Place, is_collected: bool
) -> None:
    """Records and revocations of both count, here and after later copies."""
    theirs, ours = (Revocation(repository=name) for name in ("bad/theirs", "bad/ours"))
    x, y = (
        make_record(name, source=Provenance(repository=each.repository))
        for name, each in (("x", theirs), ("y", ours))
    )
    pull(source.store, destination.store, MAIN, NOBODY)
    destination.publish(make_record("own"), x)
    destination.compact([ours])
    if is_collected:
        destination.collect()
    source.archive(make_record("news"), y)
    source.compact([theirs])
    for _ in range(2):
        assert pull(source.store, destination.store, MAIN, NOBODY).problems == ()
        names = ("w0", "w1", "later", "own", "news")
        assert [destination.best(name) for name in names] == [make_record(name) for name in names]
        assert (destination.best("x"), destination.best("y")) == (None, None)
    head = present(current_head(destination.store, MAIN, NOBODY).head)
    assert set(head.revoked) == {ours, theirs}


def test_a_copy_whose_records_the_source_has_is_replaced(source: Place, destination: Place) -> None:
    pull(source.store, destination.store, MAIN, NOBODY)
    destination.archive(make_record("own"))
    push(destination.store, source.store, "main", keys=NOBODY, signer=None)
    source.archive()
    pull(source.store, destination.store, MAIN, NOBODY)
    assert source.store.read_pointer(MAIN.head).body == (
        destination.store.read_pointer(MAIN.head).body
    )


def test_a_signed_copy_is_merged_with_a_key_or_stays_as_it_is(tmp_path: Path) -> None:
    source, copy = (Place(tmp_path / name, KEYS, OURS) for name in ("source", "copy"))
    source.archive(make_record("a"))
    copy.archive(make_record("own"))
    before = copy.store.read_pointer(MAIN.head).body
    (problem,) = pull(source.store, copy.store, MAIN, KEYS).problems
    assert "needs a signature" in problem
    assert copy.store.read_pointer(MAIN.head).body == before
    assert pull(source.store, copy.store, MAIN, KEYS, OURS).problems == ()
    assert (copy.best("a"), copy.best("own")) == (make_record("a"), make_record("own"))


def test_a_copy_is_not_taken_back_behind_a_head_that_its_machine_has_seen(tmp_path: Path) -> None:
    source, copy = (Place(tmp_path / name, KEYS, OURS) for name in ("source", "copy"))
    for name in "ab":
        copy.publish(make_record(name))
        copy.compact()
    assert copy.best("b") == make_record("b")
    push(copy.store, source.store, "main", keys=KEYS, signer=OURS)
    source.compact()
    assert pull(source.store, copy.store, MAIN, KEYS, OURS).problems == ()
    assert copy.best("b") == make_record("b")


def test_a_copy_keeps_its_head_where_a_part_of_the_other_is_missing(
    source: Place, destination: Place
) -> None:
    pull(source.store, destination.store, MAIN, NOBODY)
    source.archive(make_record("new"))
    source.store.delete(listing(source.store, MAIN).packs[-1])
    source.store.delete(listing(source.store, MAIN).packs[0])
    assert pull(source.store, destination.store, MAIN, NOBODY).problems
    assert destination.best("w0") == make_record("w0")
    source.store._objects[MAIN.head] = b"garbage"
    empty = MemoryStore()
    (problem,) = pull(source.store, empty, MAIN, NOBODY).problems
    assert "HEAD cannot be read; run tunegate cache fsck" in problem
    assert empty.names("") == []
    (problem,) = push(source.store, empty, "main", keys=NOBODY, signer=None).problems
    assert "HEAD cannot be read" in problem


def test_a_head_comes_where_only_an_earlier_snapshot_of_it_is_missing(
    source: Place, destination: Place
) -> None:
    bad = Provenance(repository="bad/one")
    source.publish(make_record("bad", source=bad))
    pull(source.store, destination.store, MAIN, NOBODY)
    source.compact([Revocation(repository=bad.repository)])
    source.archive(make_record("new"))
    head = current_head(source.store, MAIN, NOBODY).head
    assert head is not None
    source.store.delete(MAIN.content("idx", head.kept[0].index))
    assert pull(source.store, destination.store, MAIN, NOBODY).problems
    assert destination.best("new") == make_record("new")
    assert destination.best("bad") is None


def test_a_group_never_compacted_has_no_head_to_bring(tmp_path: Path, destination: Place) -> None:
    young = Place(tmp_path / "young")
    young.publish(make_record())
    assert pull(young.store, destination.store, MAIN, NOBODY).objects == 1
    assert destination.store.names("") == young.store.names("")
    young.compact()
    young.store.delete(listing(young.store, MAIN).packs[0])
    assert pull(young.store, destination.store, MAIN, NOBODY).problems
    assert destination.best() == make_record()  # the HEAD would hide the segment


class Busy(MemoryStore):
    """A store whose owner works on it while it is read for the first time."""

    def __init__(self, place: Place, work: Callable[[], object]) -> None:
        super().__init__()
        self._objects = place.store._objects
        self._work: Callable[[], object] | None = work

    def read(self, name: str) -> bytes:
        if self._work is not None:
            work, self._work = self._work, None
            work()
        return super().read(name)


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_copy_is_whole_whatever_a_compaction_does_meanwhile(
    source: Place, destination: Place, is_collected: bool
) -> None:
    """The HEAD that is copied is the one whose objects were."""
    source.publish(*numbered(1, first=7))

    def work() -> None:
        source.compact()
        if is_collected:
            source.seconds += 10**6
            source.collect()

    assert pull(Busy(source, work), destination.store, MAIN, NOBODY).problems == ()
    head = present(current_head(destination.store, MAIN, NOBODY).head)
    assert set(head.referenced_objects(MAIN)) <= set(destination.store.names(""))
    assert destination.best("w7") is not None


def test_what_waits_is_forgotten_once_it_is_delivered_and_nothing_else(
    source: Place, destination: Place
) -> None:
    """A run may add segments and lines of history while earlier ones are delivered."""
    (waiting,) = listing(source.store, MAIN).segments
    others = ["ms1/z/main/history/1", waiting.name.replace("/main/", "/main/sub/")]

    def work() -> None:
        source.store.write(others[0], b"lines")
        source.store.write(others[1], b"another zone's")
        source.publish(make_record("later"))

    busy = Busy(source, work)
    push(busy, destination.store, "main", keys=NOBODY, signer=None, are_moved=True)
    (left,) = listing(source.store, MAIN).segments
    assert left.file not in {each.file for each in listing(destination.store, MAIN).segments}
    assert set(others) <= set(source.store.names(""))
    assert waiting.name not in source.store.names("")


@pytest.mark.parametrize("is_missing", [True, False])
def test_what_is_missing_or_damaged_is_told_and_copied_once_whole(
    source: Place, destination: Place, is_missing: bool
) -> None:
    pack = listing(source.store, MAIN).packs[0]
    body = source.store.read(pack)
    source.store._objects[pack] = body[:-1]
    if is_missing:
        source.store.delete(pack)
    copied = pull(source.store, destination.store, MAIN, NOBODY)
    assert copied.problems == (f"{pack} is missing or damaged; run tunegate cache fsck",)
    assert copied.objects == 3
    source.store._objects[pack] = body
    assert pull(source.store, destination.store, MAIN, NOBODY).problems == ()
    assert destination.best("w0") == make_record("w0")


@pytest.mark.parametrize("is_collected", [False, True])
def test_a_zone_gets_a_key_and_another_one_by_pushing_what_it_has(
    source: Place, tmp_path: Path, is_collected: bool
) -> None:
    """Under the old names they would be taken for what HEAD covers, or conflict."""
    source.compact()
    if is_collected:
        source.collect()
    names = ("w0", "w1", "later")
    store = source.store
    for signer in (OURS, THEIRS):
        keys = TrustedKeys({"main": (signer.public,)})
        place = Place(tmp_path / signer.key, keys, signer).with_store(store)
        for _ in range(2):
            copied = push(store, store, "main", keys=keys, signer=signer)
            assert (copied.revoked, copied.problems) == (0, ())
        place.archive()
        assert [place.best(name) for name in names] == [make_record(name) for name in names]
        place.compact(rebuild=True)
        assert bool(list(flaws(store, MAIN, keys))) == (not is_collected)
        assert [place.best(name) for name in names] == [make_record(name) for name in names]


def test_what_no_trusted_key_has_signed_is_not_pulled(tmp_path: Path, destination: Place) -> None:
    """A push from the copy would sign it."""
    place = Place(tmp_path, BOTH)
    place.publish(make_record("good"), signer=OURS)
    place.publish(make_record("bad"), signer=THEIRS)
    copied = pull(place.store, destination.store, MAIN, KEYS)
    assert (copied.objects, copied.untrusted, copied.problems) == (1, 1, ())
    assert destination.best("bad") is None


@pytest.mark.parametrize("damaged_at", [20, -1])
def test_a_damaged_segment_of_a_signed_zone_is_not_called_untrusted(
    tmp_path: Path, destination: Place, damaged_at: int
) -> None:
    """The copy would lack it without a word."""
    place = Place(tmp_path, KEYS, OURS)
    place.publish(make_record())
    (name,) = place.store.names("")
    body = bytearray(place.store.read(name))
    body[damaged_at] ^= 1
    place.store._objects[name] = bytes(body)
    copied = pull(place.store, destination.store, MAIN, KEYS)
    assert (copied.objects, copied.untrusted, len(copied.problems)) == (0, 0, 1)


def test_what_archives_hold_is_not_archived_again_by_a_push(
    source: Place, destination: Place
) -> None:
    pull(source.store, destination.store, MAIN, NOBODY)
    destination.archive(make_record("own"))
    for objects in (2, 0, 0):
        copied = push(destination.store, source.store, "main", keys=NOBODY, signer=None)
        assert (copied.objects, copied.records, copied.problems) == (objects, 4, ())
        source.archive()
        assert source.objects("cold") == 2
    for name in [each for each in source.store._objects if "/cold/" in each]:
        source.store._objects[name] = source.store._objects[name][:-1] + b"x"  # its list is whole
    copied = push(destination.store, source.store, "main", keys=NOBODY, signer=None)
    assert copied.objects == 4


@pytest.mark.parametrize("is_head_lost", [False, True])
def test_an_archive_that_was_planted_gives_a_signed_zone_what_it_trusts_alone(
    tmp_path: Path, is_head_lost: bool
) -> None:
    """HEAD would vouch for the rest, and a push from a copy would sign it."""
    place, planted = Place(tmp_path / "zone", KEYS, OURS), Place(tmp_path / "planted")
    planted.publish(make_record("good"), signer=OURS)
    planted.archive(make_record("bad"))
    place.archive(make_record("a"))
    (name,) = listing(planted.store, MAIN).archives
    place.store.write(name, planted.store.read(name))
    if is_head_lost:
        place.store.delete(MAIN.head)
    place.archive(make_record("b"))
    assert place.compact().status == "nothing new"
    copy, inner = Place(tmp_path / "copy", KEYS, OURS), Place(tmp_path / "inner", KEYS, OURS)
    assert pull(place.store, copy.store, MAIN, KEYS, OURS).problems == ()
    push(copy.store, inner.store, "main", keys=KEYS, signer=OURS)
    for each in (place, inner):
        assert each.best("bad") is None
        assert [each.best(name) for name in ("good", "a", "b")] == [
            make_record(name) for name in ("good", "a", "b")
        ]


@pytest.mark.parametrize("key", [THEIRS.key, ""])
def test_what_is_revoked_is_not_pushed(tmp_path: Path, key: str) -> None:
    """Signed anew, records of a key that was revoked would count again; or only the copy has
    revoked them."""
    source, copy, waiting = (Place(tmp_path / name, BOTH, OURS) for name in ("s", "c", "w"))
    for place in (copy, waiting):
        bad = make_record("bad", source=Provenance(run="1"))
        place.publish(bad, *(() if key else (make_record(),)), signer=THEIRS)
    source.archive(make_record("a"))
    copy.archive(make_record("b"))
    revoked = Revocation(key=key, run="" if key else "1")
    (source if key else copy).compact([revoked])
    keys = KEYS if key else BOTH
    copied = push(copy.store, source.store, "main", keys=keys, signer=OURS)
    assert (copied.revoked, copied.problems) == (1, ())
    source.compact()
    assert source.best("bad") is None
    assert source.best("b") == make_record("b")
    assert bool(source.best()) == (not key)
    push(waiting.store, source.store, "main", keys=keys, signer=OURS, are_moved=True)
    assert waiting.store.names("") == []


@pytest.mark.parametrize("keys", [BOTH, NOBODY])
def test_a_change_of_keys_signs_nothing_that_the_zone_did_not_trust(
    tmp_path: Path, keys: TrustedKeys
) -> None:
    """Its archives have records of a key that was taken out, or from before it had keys."""
    before, bucket = Place(tmp_path, keys, OURS), Place(tmp_path, KEYS, OURS)
    bucket.with_store(before.store)
    before.publish(make_record("good"), signer=OURS)
    before.publish(make_record("bad"), signer=THEIRS)
    before.compact()
    bucket.archive()
    copy = MemoryStore()
    assert pull(bucket.store, copy, MAIN, KEYS).problems == ()
    new = Signer(Ed25519PrivateKey.from_private_bytes(b"\x07" * 32))
    place = Place(tmp_path, TrustedKeys({"main": (new.public,)}), new).with_store(bucket.store)
    copied = push(copy, place.store, "main", keys=place._keys, signer=new)
    assert (copied.records, copied.untrusted, copied.problems) == (1, 1, ())
    place.archive()
    assert (place.best("good"), place.best("bad")) == (make_record("good"), None)


@pytest.mark.parametrize("keys", [BOTH, NOBODY])
def test_a_segment_that_is_cut_escapes_no_revocation_of_its_key(
    tmp_path: Path, keys: TrustedKeys
) -> None:
    """The rest of it is signed anew, or not at all."""
    bucket, copy = (Place(tmp_path / name, keys, OURS) for name in ("bucket", "copy"))
    bucket.publish(make_record(source=Provenance(run="5")), make_record("x"))
    bucket.compact([Revocation(run="5")])
    pull(bucket.store, copy.store, MAIN, keys)
    bucket.compact([Revocation(key=OURS.key)])
    signer = None if keys is NOBODY else THEIRS
    assert push(copy.store, bucket.store, "main", keys=keys, signer=signer).revoked == 2
    assert (bucket.best(), bucket.best("x")) == (None, None)


@pytest.mark.parametrize("signer", [None, OURS])
def test_what_waits_and_this_version_cannot_read_goes_on_waiting(
    tmp_path: Path, signer: Signer | None
) -> None:
    """It is delivered whole, or nobody vouches for it."""
    keys = KEYS if signer else NOBODY
    later = encode_record(make_record()).replace(b'"v":1', b'"v":2')
    body = segment.pack_lines([later, encode_record(make_record("x"))])
    digest = segment.segment_digest(body)
    name = segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=digest)
    bucket, waiting = Place(tmp_path, keys, OURS), MemoryStore()
    waiting.write(name.name, body)
    copied = push(waiting, bucket.store, "main", keys=keys, signer=signer, are_moved=True)
    assert (copied.objects, copied.records) == (1, 1)
    assert bucket.best("x") == make_record("x")
    assert waiting.names("") == ([name.name] if signer else [])
    assert [p.partition(": ")[2] for p in copied.problems] == (
        ["lines stay behind, which this version cannot read"] if signer else []
    )
    assert bool(signer) != (bucket.store.names("")[0] == name.name)


def test_a_head_that_nobody_signed_makes_no_push_forget_what_waits(tmp_path: Path) -> None:
    bucket, waiting = Place(tmp_path / "bucket", KEYS, OURS), Place(tmp_path / "waiting")
    bucket.publish(make_record("a"))
    Place(tmp_path).with_store(bucket.store).compact([Revocation(until=2**40)])
    waiting.publish(make_record())
    waits = waiting.store.names("")
    for _ in range(2):
        copied = push(waiting.store, bucket.store, "main", keys=KEYS, signer=OURS, are_moved=True)
        assert "no trusted key has signed it" in copied.problems[0]
        assert (copied.objects, waiting.store.names("")) == (0, waits)
    bucket.compact()
    copied = push(waiting.store, bucket.store, "main", keys=KEYS, signer=OURS, are_moved=True)
    assert (copied.records, copied.problems, waiting.store.names("")) == (1, (), [])
    assert bucket.best() is not None


def test_a_damaged_segment_is_told_and_stays_behind(source: Place, destination: Place) -> None:
    (name,) = listing(source.store, MAIN).segments
    source.store.delete(name.name)
    source.store.write(name.name, b"garbage")
    copied = push(source.store, destination.store, "main", keys=NOBODY, signer=None)
    assert copied.objects == 2
    assert name.name in copied.problems[0]
    archive = listing(source.store, MAIN).archives[0]
    source.store.delete(archive)
    copied = push(source.store, destination.store, "main", keys=NOBODY, signer=None)
    assert copied.problems[1] == f"{archive}: it is missing"
