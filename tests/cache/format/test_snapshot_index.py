import hashlib

import msgspec
import pytest
import zstandard

from tests.support.tuning_records import hexdigest, make_shape
from tunegate_cache.format import snapshot_index
from tunegate_cache.format.pack import describe_block

ROWS = tuple(
    snapshot_index.IndexRow(bytes.fromhex(hexdigest(name)), number // 2)
    for number, name in enumerate("abc")
)
SHAPES = (make_shape(extents=(64, 64)), make_shape(extents=(8, 8)), None)
INDEX = snapshot_index.SnapshotIndex(
    serial=1,
    packs=("p" * 64,),
    blocks=(describe_block(0, 0, b"first"), describe_block(0, 5, b"second")),
    rows=ROWS,
    skeletons=snapshot_index.skeletons(enumerate(SHAPES)),
)


def decoded(index: snapshot_index.SnapshotIndex) -> snapshot_index.SnapshotIndex:
    body = snapshot_index.encode_index(index)
    return snapshot_index.decode_index(body, hashlib.sha256(body).hexdigest())


def test_an_index_is_what_was_written() -> None:
    assert decoded(INDEX) == INDEX


def test_every_workload_has_its_block() -> None:
    assert INDEX.block_of() == {hexdigest("a"): 0, hexdigest("b"): 0, hexdigest("c"): 1}


def test_neighbours_have_the_skeleton_and_something_to_teach_and_the_nearest_is_first() -> None:
    assert INDEX.neighbours(make_shape(extents=(16, 16))) == [hexdigest("b"), hexdigest("a")]
    assert INDEX.neighbours(make_shape(extents=(64, 32))) == [hexdigest("a"), hexdigest("b")]
    assert INDEX.neighbours(make_shape("another")) == []


def test_members_stand_under_their_skeleton_in_its_order() -> None:
    found = snapshot_index.skeletons(
        [(4, make_shape("z")), (5, make_shape("y")), (6, None), (7, make_shape("z"))]
    )
    assert list(found) == sorted([hexdigest("y"), hexdigest("z")])
    expected = (snapshot_index.Member((64, 64), 4), snapshot_index.Member((64, 64), 7))
    assert found[hexdigest("z")] == expected


@pytest.mark.parametrize(
    "flaw",
    [
        {"packs": ()},
        {"blocks": INDEX.blocks[:1]},
        {"blocks": INDEX.blocks[:1] * 2},
        {"blocks": (INDEX.blocks[0], msgspec.structs.replace(INDEX.blocks[1], start=-1))},
        {"blocks": (INDEX.blocks[0], msgspec.structs.replace(INDEX.blocks[1], size=-1))},
        {"rows": ROWS[:1]},
        {"skeletons": {"s": (snapshot_index.Member((1,), -1),)}},
    ],
)
def test_an_index_that_points_outside_of_itself_is_refused(flaw: dict[str, object]) -> None:
    with pytest.raises(snapshot_index.CorruptIndexError, match="points outside of itself"):
        decoded(msgspec.structs.replace(INDEX, **flaw))


def test_other_content_other_versions_and_no_index_at_all_are_refused() -> None:
    with pytest.raises(snapshot_index.CorruptIndexError, match="not what its name says"):
        snapshot_index.decode_index(snapshot_index.encode_index(INDEX), "0" * 64)
    with pytest.raises(snapshot_index.CorruptIndexError, match="later version"):
        decoded(msgspec.structs.replace(INDEX, v=2))
    for body in (b"plain", zstandard.compress(b"no index")):
        with pytest.raises(snapshot_index.CorruptIndexError, match="not an index"):
            snapshot_index.decode_index(body, hashlib.sha256(body).hexdigest())
