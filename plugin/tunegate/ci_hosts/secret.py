"""A token that can be handed on without being shown."""

from __future__ import annotations


class Secret:
    """A text that never shows itself."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else "''"
