"""Removes secrets from text that is shown or kept. Pure."""

import re
from collections.abc import Mapping, Sequence

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|(?<!STEP)(?<!GROUP)_KEY", re.IGNORECASE
)
"""The key of a step, or of a group of them, is its name in a pipeline."""
_MIN_SECRET = 6
_IN_ADDRESS = re.compile(r"(?<=:/)(/|(?<!models:/))[^/\s]+@")
"""A path made from an address has one slash. `models:/name@alias` names a model."""
_IN_QUERY = re.compile(
    r"([?&](?=[^=&?\s]*(?:sig|token|jwt|secret|key|credential|passw|auth))[^=&?\s]*+=)[^&\s\"']+",
    re.IGNORECASE,
)
"""A signed address carries its rights in its query. A name is read once, so the time is linear in
the length of a text."""
_QUERY = re.compile(r"(://[^?\s]*\?)\S+")
_SHOWN = "***"


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the values of all variables named like a secret, line by line, longest first."""
    lines = {
        line.strip()
        for name, value in environment.items()
        if _SECRET_NAME.search(name)
        for line in (value, *value.splitlines())
    }
    return tuple(sorted((s for s in lines if len(s) >= _MIN_SECRET), key=len, reverse=True))


def redact_markdown(text: str, secrets: Sequence[str]) -> str:
    """Returns Markdown without these secrets, whose characters it may have as references."""
    for secret in secrets:
        text = re.sub("".join(map(_escaped_or_plain, secret)), _SHOWN, text)
    return redact(text, ())


def _escaped_or_plain(character: str) -> str:
    return rf"\\?(?:{re.escape(character)}|&#{ord(character)};)(?:&#8203;)?"


def redact(text: str, secrets: Sequence[str]) -> str:
    """Returns the text without these secrets, without what precedes the host of an address, and
    without the signatures and keys of its query."""
    for secret in secrets:
        text = text.replace(secret, _SHOWN)
    return _IN_QUERY.sub(rf"\1{_SHOWN}", _IN_ADDRESS.sub(rf"\1{_SHOWN}@", text))


def redact_word(word: str, secrets: Sequence[str]) -> str:
    """Returns an argument of a command line without these secrets, and without an address's query:
    what carries rights in it may have any name."""
    return _QUERY.sub(rf"\1{_SHOWN}", redact(word, secrets))
