from __future__ import annotations

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tunegate_cache.format.decompression import (
    MAX_TEXT_BYTES,
    SMALL_BYTES,
    DecompressionError,
    decompress,
)


@given(st.binary(max_size=2000))
def test_what_was_compressed_comes_back(text: bytes) -> None:
    assert decompress(zstandard.compress(text)) == text


def test_what_is_no_zstandard_data_is_refused_and_nothing_has_no_content() -> None:
    assert decompress(b"") == b""
    with pytest.raises(DecompressionError, match="not zstandard data"):
        decompress(b"plain text")


def test_a_bomb_is_refused_and_a_short_text_that_repeats_itself_is_none() -> None:
    assert len(decompress(zstandard.compress(bytes(SMALL_BYTES)))) == SMALL_BYTES
    with pytest.raises(DecompressionError, match="more than is allowed"):
        decompress(zstandard.compress(bytes(SMALL_BYTES + 1)))


def test_a_text_is_limited_by_what_its_reader_allows() -> None:
    body = zstandard.compress(os.urandom(5000))
    assert len(decompress(body, 5000)) == 5000
    with pytest.raises(DecompressionError, match="more than is allowed"):
        decompress(body, 4999)
    with pytest.raises(DecompressionError, match="more than is allowed"):
        decompress(zstandard.compress(os.urandom(MAX_TEXT_BYTES + 1), level=1))
