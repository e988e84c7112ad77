"""Encodes digests, texts and numbers as a row of integers, and reads such rows without trusting
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_DIGITS = (13, 13, 13, 13, 12)
"""The hexadecimal digits of a SHA-256 in each of its integers."""
_LETTERS = 6
"""The bytes of a text in each of its integers."""


class RefusedRowError(ValueError):
    """A row with invalid content."""


def digest_row(digest: str) -> Iterator[int]:
    """Yields the integers of a digest of 64 hexadecimal digits."""
    start = 0
    for digits in _DIGITS:
        yield int(digest[start : start + digits], 16)
        start += digits


def text_row(text: str) -> Iterator[int]:
    """Yields the number of bytes, and then the bytes."""
    content = text.encode()
    yield len(content)
    for start in range(0, len(content), _LETTERS):
        yield int.from_bytes(content[start : start + _LETTERS], "big")


class RowReader:
    """Reads a row from left to right. Every method raises RefusedRowError for missing or invalid
    content."""

    def __init__(self, row: Sequence[int]) -> None:
        self._row, self._at = row, 0

    def number(self, least: int, most: int) -> int:
        if self._at >= len(self._row) or not least <= self._row[self._at] <= most:
            message = "a number is missing, or out of range"
            raise RefusedRowError(message)
        self._at += 1
        return self._row[self._at - 1]

    def numbers(self, least: int, most: int, most_of_them: int) -> tuple[int, ...]:
        """Returns the numbers that follow their count."""
        return tuple(self.number(least, most) for _ in range(self.number(0, most_of_them)))

    def digest(self) -> str:
        return "".join(f"{self.number(0, 16**digits - 1):0{digits}x}" for digits in _DIGITS)

    def text(self, most_bytes: int) -> str:
        """Returns a printable or empty text."""
        size = self.number(0, most_bytes)
        sizes = [min(_LETTERS, size - start) for start in range(0, size, _LETTERS)]
        content = b"".join(self.number(0, 256**n - 1).to_bytes(n, "big") for n in sizes)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise RefusedRowError(str(error)) from error
        if not text.isprintable():
            message = "a text is not printable"
            raise RefusedRowError(message)
        return text

    def end(self) -> None:
        if self._at != len(self._row):
            message = "something is left over"
            raise RefusedRowError(message)
