from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cache.format.test_signing import KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY
from tests.support.tuning_records import TARGET
from tunegate_cache.format.head import (
    CorruptHeadError,
    Head,
    LaterHeadError,
    Snapshot,
    Unreferenced,
    decode_head,
    encode_head,
    head_digest,
    kept_for_pins,
)
from tunegate_cache.format.names import group_of

DAY = 24 * 3600
NOW = 1000 * DAY + DAY // 2


def snapshot(version: int, at: int = 0) -> Snapshot:
    return Snapshot(version=version, index=f"{version:064x}", packs=("a" * 64, "b" * 64), at=at)


HEAD = Head(
    version=3,
    parent="p",
    snapshot=snapshot(3),
    archives=("c" * 64,),
    covers=("a segment",),
    kept=(snapshot(2),),
    unreferenced=(Unreferenced("gone", 7),),
)


def test_a_head_is_what_was_written_with_and_without_a_signature() -> None:
    assert decode_head(encode_head(HEAD, MAIN, None), MAIN, NOBODY) == HEAD
    assert decode_head(encode_head(HEAD, MAIN, OURS), MAIN, KEYS) == HEAD


@pytest.mark.parametrize("signer", [None, THEIRS])
def test_a_head_that_nobody_trusted_has_signed_is_refused(signer: object) -> None:
    body = encode_head(HEAD, MAIN, signer)  # type: ignore[arg-type]
    with pytest.raises(CorruptHeadError, match="not signed by a trusted key"):
        decode_head(body, MAIN, KEYS)


def test_a_head_of_another_group_is_refused_though_its_signature_is_ours() -> None:
    body = encode_head(HEAD, group_of("team", TARGET), OURS)
    with pytest.raises(CorruptHeadError, match="not signed by a trusted key"):
        decode_head(body, MAIN, KEYS)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[" * 5000, b"\xff", b'{"head":{},"signature":"zz"}', b"null"]
)
def test_what_is_no_head_is_refused(body: bytes) -> None:
    with pytest.raises(CorruptHeadError, match="cannot be read"):
        decode_head(body, MAIN, NOBODY)


def test_a_later_version_is_told_apart_because_it_must_be_left_alone() -> None:
    later = encode_head(msgspec.structs.replace(HEAD, v=2), MAIN, None)
    with pytest.raises(LaterHeadError, match="update tunegate"):
        decode_head(later, MAIN, NOBODY)


def test_everything_that_a_head_names_is_referenced() -> None:
    referenced = list(HEAD.referenced(MAIN))
    assert MAIN.content("idx", snapshot(2).index) in referenced
    assert MAIN.content("idx", snapshot(3).index) in referenced
    assert MAIN.content("cold", "c" * 64) in referenced
    assert referenced.count(MAIN.content("pack", "a" * 64)) == 2
    assert len(referenced) == 7


def test_digests_of_heads_tell_them_apart() -> None:
    assert head_digest(b"a") == head_digest(b"a") != head_digest(b"b")
    assert len(head_digest(b"a")) == 64


def test_of_a_day_that_is_over_the_last_snapshot_is_kept() -> None:
    ages = {1: 40 * DAY, 2: 5 * DAY + 60, 3: 5 * DAY, 4: 60, 5: 30}
    every = tuple(snapshot(version, NOW - age) for version, age in ages.items())
    assert [kept.version for kept in kept_for_pins(every, NOW)] == [3, 4, 5]


@given(st.lists(st.integers(0, 60 * DAY), max_size=40))
def test_what_is_kept_for_pins_is_recent_ordered_and_little(ages: list[int]) -> None:
    every = tuple(snapshot(n, NOW - age) for n, age in enumerate(sorted(ages, reverse=True)))
    kept = kept_for_pins(every, NOW)
    versions = [each.version for each in kept]
    assert versions == sorted(set(versions))
    assert all(NOW - each.at <= 30 * DAY for each in kept)
    assert {each.version for each in every if NOW - each.at <= DAY} <= set(versions)
    assert len([each for each in kept if NOW - each.at > DAY]) <= 31
