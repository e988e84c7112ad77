"""Decompresses what others wrote, within limits of size, ratio and memory."""

import zstandard

MAX_TEXT_BYTES = 16 * 1024 * 1024
"""The limit on the text of a segment or block: sixteen times what a run writes into one, and small
in any reader's memory."""
_MAX_RATIO = 64
SMALL_BYTES = 1024 * 1024
"""Text smaller than this may have a high ratio: it is no bomb, only short and repetitive."""
_CHUNK = 1024 * 1024
_MAX_WINDOW = 2**23


class DecompressionError(Exception):
    """The bytes are not zstandard data, or too many."""


def decompress(body: bytes, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Returns the content. Raises DecompressionError."""
    limit = min(max_bytes, max(SMALL_BYTES, _MAX_RATIO * len(body)))
    text = bytearray()
    try:
        with zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(body) as reader:
            while len(text) <= limit and (chunk := reader.read(_CHUNK)):
                text += chunk
    except zstandard.ZstdError as error:
        message = "not zstandard data"
        raise DecompressionError(message) from error
    if len(text) > limit:
        message = "unpacks to more than is allowed"
        raise DecompressionError(message)
    return bytes(text)
