"""Values of the configuration as its file writes them."""

from __future__ import annotations

import msgspec


def written(value: object) -> str:
    """Returns the value in YAML's short form: `3`, `fail`, `[1, 128]`; `not set` for None."""
    if value is None:
        return "not set"
    if isinstance(value, str):
        return value
    text = msgspec.json.encode(_short(msgspec.to_builtins(value))).decode()
    return text.replace('"', "").replace(",", ", ").replace(":", ": ")


def _short(value: object) -> object:
    """A value without the `.0` of a number that is whole."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
