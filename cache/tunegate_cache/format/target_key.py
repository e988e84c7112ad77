"""The key of a target: what changes the code counts, what only names the host does not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_IGNORED = frozenset(
    {"mtriple", "tag", "keys", "libs", "device", "model", "system-lib", "from_device"}
)


class TargetKey(msgspec.Struct, frozen=True):
    """`digest` is 64 hexadecimal digits; `slug` is for people, such as `cuda-sm_90`."""

    digest: str
    slug: str


def target_key(attributes: Mapping[str, Any]) -> TargetKey:
    """The key of the compiler's target attributes, whatever their order."""
    text = json.dumps(_canonical(attributes), sort_keys=True, separators=(",", ":"))
    kind = str(attributes["kind"])
    arch = str(attributes.get("arch") or attributes.get("mcpu") or "generic")
    slug = f"{_word(kind)}-{_word(arch)}"
    return TargetKey(hashlib.sha256(b"ms-tk1" + text.encode()).hexdigest(), slug)


def _canonical(attributes: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in attributes.items() if name not in _IGNORED}
    if "mattr" in kept:
        kept["mattr"] = sorted(set(_features(kept["mattr"])))
    if isinstance(kept.get("host"), Mapping):
        kept["host"] = kept["host"].get("kind")
    return {name: value for name, value in kept.items() if value is not None}


def _features(value: str | Iterable[object]) -> list[str]:
    found = value.split(",") if isinstance(value, str) else value
    return [str(feature).strip() for feature in found]


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower())
