import os

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import make_record
from tunegate_cache.format import decompression
from tunegate_cache.format.pack import CorruptBlockError, blocks, describe_block, records
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import StoredRecord


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
    for names, body in found:
        assert len(list(records(body, describe_block(0, 0, body)))) == 150 * len(names)


def test_a_workload_that_is_larger_than_a_block_has_one_of_its_own() -> None:
    large = [stored("a")] * 400
    found = [names for names, _ in blocks([("a", large), ("b", large[:1]), ("c", large)])]
    assert found == [["a"], ["b"], ["c"]]


def test_without_workloads_there_is_no_block() -> None:
    assert list(blocks([])) == []


def test_a_block_is_described_by_its_place_and_its_content() -> None:
    block = describe_block(2, 30, b"body")
    assert (block.pack, block.start, block.size) == (2, 30, 4)
    assert block.digest != describe_block(2, 30, b"bod?").digest


def test_bytes_that_the_index_does_not_describe_are_refused() -> None:
    ((_, body),) = blocks([("a", [stored("a")])])
    block = describe_block(0, 0, body)
    with pytest.raises(CorruptBlockError, match="not what the index says"):
        list(records(body + b"x", block))
    with pytest.raises(CorruptBlockError):
        list(records(b"plain", describe_block(0, 0, b"plain")))


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
    assert (
        len(decompression.decompress(zstandard.compress(bytes(decompression.SMALL_BYTES))))
        == decompression.SMALL_BYTES
    )
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
