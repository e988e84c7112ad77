"""Batches of records as bytes, whole and damaged."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
import zstandard
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import require
from tests.support.tuning_records import RECORDS, hexdigest, make_record
from tunegate_cache.format import decompression, names, segment, signing
from tunegate_cache.format import record_codec as wire
from tunegate_cache.format.pack import CorruptBlockError, blocks, describe_block, records
from tunegate_cache.format.record_codec import RefusedLine, encode_record
from tunegate_cache.format.records import StoredRecord, TuningRecord
from tunegate_cache.format.segment import CorruptSegmentError, SegmentContents


def unpacked(body: bytes) -> SegmentContents:
    return segment.unpack_segment(body, segment.segment_digest(body))


@given(st.lists(RECORDS, max_size=20))
def test_a_segment_gives_back_its_records_in_order(records: list[TuningRecord]) -> None:
    contents = unpacked(segment.pack_segment(records))
    assert (contents.records, contents.refused) == (tuple(records), ())


def test_equal_records_give_equal_names() -> None:
    assert segment.pack_segment([make_record()]) == segment.pack_segment([make_record()])


def test_a_bad_line_costs_itself_only() -> None:
    rows = [wire.encode_record(make_record("a")), b"nonsense", wire.encode_record(make_record("b"))]
    contents = unpacked(zstandard.ZstdCompressor().compress(b"\n".join(rows)))
    assert contents.records == (make_record("a"), make_record("b"))
    assert contents.refused == (RefusedLine("not a record"),)


def test_a_body_under_another_name_is_refused() -> None:
    with pytest.raises(CorruptSegmentError, match="not what its name says"):
        segment.unpack_segment(segment.pack_segment([make_record()]), hexdigest("another"))


@pytest.mark.parametrize("megabytes", [2, 300])
def test_a_bomb_is_refused(megabytes: int) -> None:
    body = zstandard.ZstdCompressor().compress(b"\n" * (megabytes << 20))
    with pytest.raises(CorruptSegmentError, match="more than is allowed"):
        unpacked(body)


def test_a_window_that_needs_gigabytes_is_refused() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    compressor = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    with pytest.raises(CorruptSegmentError, match="not zstandard data"):
        unpacked(compressor.compress(b"x" * 100) + compressor.flush())


@given(st.binary(max_size=100))
def test_any_bytes_are_contents_or_corrupt(body: bytes) -> None:
    try:
        contents = unpacked(body)
    except CorruptSegmentError:
        return
    assert contents.records == ()


@given(st.integers(0, 2000))
def test_a_truncated_body_never_gives_a_record_that_was_not_there(length: int) -> None:
    records = tuple(make_record(run_nanoseconds=(time,)) for time in range(1, 30))
    try:
        contents = unpacked(segment.pack_segment(records)[:length])
    except CorruptSegmentError:
        return
    assert contents.records == records[: len(contents.records)]


def test_very_many_equal_records_are_split_so_that_none_is_taken_for_a_bomb() -> None:
    records = (make_record(),) * 5000
    found = list(segment.batches(records))
    assert len(found) > 1
    assert sum(found, ()) == records
    assert all(unpacked(segment.pack_segment(batch)).records == batch for batch in found)


def test_more_lines_than_a_job_may_write_are_refused_before_any_is_read() -> None:
    body = zstandard.ZstdCompressor().compress(b"1\n" * 20_000)
    with pytest.raises(CorruptSegmentError, match="more than 20000 records"):
        unpacked(body)
    most = unpacked(zstandard.ZstdCompressor().compress(b"1\n" * 19_999 + b"1"))
    assert len(most.refused) == 20_000


def make_signer(seed: int = 1) -> signing.Signer:
    return signing.Signer(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


OURS, THEIRS = make_signer(1), make_signer(2)
KEYS = signing.TrustedKeys({"main": (OURS.public,), "team": (OURS.public,)})
BOTH = signing.TrustedKeys({"main": (OURS.public, THEIRS.public)})


def test_a_signature_holds_for_its_own_name_and_content_only() -> None:
    signature = OURS.sign("a", "d")
    assert KEYS.accepts("main", "a", "d", signature)
    assert not KEYS.accepts("main", "b", "d", signature)
    assert not KEYS.accepts("main", "a", "e", signature)


def test_an_unknown_key_a_cut_signature_and_none_are_refused() -> None:
    signature = OURS.sign("a", "d")
    forged = signing.Signature(OURS.key, THEIRS.sign("a", "d").value)
    cut = signing.Signature(OURS.key, signature.value[:-1])
    for bad in (THEIRS.sign("a", "d"), forged, cut, None):
        assert not KEYS.accepts("main", "a", "d", bad)


def test_a_zone_without_keys_needs_no_signature_and_a_part_of_a_zone_does() -> None:
    assert KEYS.accepts("pr/o/r/7", "a", "d", None)
    assert not KEYS.is_required("teams")
    assert KEYS.is_required("team/x")
    assert not KEYS.accepts("team/x", "a", "d", None)


def test_a_key_made_by_openssl_signs_what_its_public_half_accepts(tmp_path: Path) -> None:
    require("openssl")
    pem = tmp_path / "key.pem"
    line = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(pem)]
    subprocess.run(line, capture_output=True, check=True)
    signer = signing.signer_from_pem(pem.read_text())
    keys = signing.TrustedKeys({"main": (signer.public,)})
    assert keys.accepts("main", "a", "d", signer.sign("a", "d"))


@pytest.mark.parametrize("text", ["", "hello", "-----BEGIN PRIVATE KEY-----\nAA==\n-----END-----"])
def test_what_is_no_key_is_named_without_being_shown(text: str) -> None:
    with pytest.raises(signing.BadKeyError, match="openssl genpkey") as caught:
        signing.signer_from_pem(text)
    assert not text or text not in str(caught.value)
    with pytest.raises(signing.BadKeyError, match="not a public key"):
        signing.TrustedKeys({"main": (text,)})


# Object names, both ways.

ZONES = st.sampled_from(["main", "rel", "team/vision", "pr/o/r/7", "dev/me_2", "a/g/b/seg"])


@given(ZONES, st.integers(0, 10**13 - 1), st.text("0123456789abcdef", min_size=8, max_size=8))
def test_a_segment_name_gives_back_its_parts(zone: str, milliseconds: int, writer: str) -> None:
    name = names.segment_name(
        zone, hexdigest("t"), milliseconds=milliseconds, writer=writer, digest=hexdigest("b")
    )
    assert names.parse_segment(name.name) == name
    assert name.name.startswith(f"{names.group_of(zone, hexdigest('t')).prefix}seg/")


def test_the_layout_is_what_permissions_are_written_for() -> None:
    name = names.segment_name(
        "pr/o/r/7", "a" * 64, milliseconds=12, writer="b" * 8, digest="c" * 64
    )
    assert name.name == (f"ms1/z/pr/o/r/7/g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ms1/z/main/g/t/HEAD",
        "x/seg/1-2-3.zst",
        f"ms1/z/../g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst",
        f"ms1/z/main/g/{'a' * 16}/seg/0000000000012-{'b' * 8}-{'c' * 64}.zst\n",
        f"ms1/z/main/g/{'a' * 16}/seg/000000000001٢-{'b' * 8}-{'c' * 64}.zst",
    ],
)
def test_other_objects_are_no_segments(name: str) -> None:
    assert names.parse_segment(name) is None


@given(st.text(max_size=200))
def test_any_text_is_a_segment_name_or_none(name: str) -> None:
    assert names.parse_segment(name) is None


@pytest.mark.parametrize("zone", ["main", "rel", "team/vision", "pr/o/r/7", "dev/me_2"])
def test_a_zone_is_words_joined_by_slashes(zone: str) -> None:
    assert names.zone_problem(zone) is None


@pytest.mark.parametrize(
    "zone", ["", "..", "pr/../main", "/main", "main/", "a b", "pr//7", "ü", "main\n", "x" * 121]
)
def test_anything_else_is_refused_with_the_rule(zone: str) -> None:
    assert "words of letters" in (names.zone_problem(zone) or "")


def test_a_listing_is_believed_for_the_zone_and_target_asked_for_only() -> None:
    ours, others, elsewhere = (
        names.segment_name(zone, target, milliseconds=1, writer="b" * 8, digest="c" * 64)
        for zone, target in [("main", "a" * 64), ("main", "d" * 64), ("pr/o/r/7", "a" * 64)]
    )
    inside = names.segment_name(
        f"main/g/{'a' * 16}/seg/x", "a" * 64, milliseconds=1, writer="b" * 8, digest="c" * 64
    )
    listed = [ours.name, others.name, elsewhere.name, inside.name, "ms1/z/main/HEAD"]
    assert list(names.segments_of(names.group_of("main", "a" * 64), listed)) == [ours]


def test_a_zone_longer_than_any_that_is_written_is_no_segment() -> None:
    name = names.segment_name("x" * 121, "a" * 64, milliseconds=1, writer="b" * 8, digest="c" * 64)
    assert names.parse_segment(name.name) is None


# Packs.


def stored(workload: str, *, signer: str = "") -> StoredRecord:
    record = make_record(workload)
    return StoredRecord(record, encode_record(record), signer)


def test_a_block_gives_back_its_records_with_the_keys_that_signed_them() -> None:
    written = [stored("a", signer="ours"), stored("b")]
    ((names, body),) = blocks([("a", written[:1]), ("b", written[1:])])
    assert names == ["a", "b"]
    assert list(records(body, describe_block(0, 0, body))) == written


def test_a_workload_is_never_divided_among_blocks() -> None:
    many = [stored("a")] * 150
    found = list(blocks([("a", many), ("b", many), ("c", many)]))
    assert [name for names, _ in found for name in names] == ["a", "b", "c"]
    assert len(found) > 1
    for workloads, body in found:
        assert len(list(records(body, describe_block(0, 0, body)))) == 150 * len(workloads)


def test_a_workload_that_is_larger_than_a_block_has_one_of_its_own() -> None:
    large = [stored("a")] * 400
    found = [names for names, _ in blocks([("a", large), ("b", large[:1]), ("c", large)])]
    assert found == [["a"], ["b"], ["c"]]


def test_a_block_is_described_by_its_place_and_its_content() -> None:
    block = describe_block(2, 30, b"body")
    assert (block.pack, block.start, block.size) == (2, 30, 4)
    assert block.digest != describe_block(2, 30, b"bod?").digest


def test_bytes_that_the_index_does_not_describe_are_refused() -> None:
    ((_, body),) = blocks([("a", [stored("a")])])
    block = describe_block(0, 0, body)
    with pytest.raises(CorruptBlockError, match="not what the index says"):
        list(records(body + b"x", block))
    for odd, said in ((b"plain", "not zstandard"), (zstandard.compress(b"\n" * 20_000), "20000")):
        with pytest.raises(CorruptBlockError, match=said):
            list(records(odd, describe_block(0, 0, odd)))


def test_a_line_that_is_no_usable_record_is_left_out() -> None:
    good = stored("a")
    later = msgspec.json.encode({"v": 99})
    body = zstandard.compress(b"\n".join([b"- " + later, b"", b"junk", b"- " + good.text]))
    assert list(records(body, describe_block(0, 0, body))) == [good]


@given(st.binary(max_size=2000))
def test_what_was_compressed_comes_back(text: bytes) -> None:
    assert decompression.decompress(zstandard.compress(text)) == text


def test_what_is_no_zstandard_data_is_refused_and_nothing_has_no_content() -> None:
    assert decompression.decompress(b"") == b""
    with pytest.raises(decompression.DecompressionError, match="not zstandard data"):
        decompression.decompress(b"plain text")


def test_a_bomb_is_refused_and_a_short_text_that_repeats_itself_is_none() -> None:
    found = len(decompression.decompress(zstandard.compress(bytes(decompression.SMALL_BYTES))))
    assert found == decompression.SMALL_BYTES
    with pytest.raises(decompression.DecompressionError, match="more than is allowed"):
        decompression.decompress(zstandard.compress(bytes(decompression.SMALL_BYTES + 1)))


def test_a_text_is_limited_by_what_its_reader_allows() -> None:
    body = zstandard.compress(os.urandom(5000))
    assert len(decompression.decompress(body, 5000)) == 5000
    with pytest.raises(decompression.DecompressionError, match="more than is allowed"):
        decompression.decompress(body, 4999)
    with pytest.raises(decompression.DecompressionError, match="more than is allowed"):
        decompression.decompress(
            zstandard.compress(os.urandom(decompression.MAX_TEXT_BYTES + 1), level=1)
        )
