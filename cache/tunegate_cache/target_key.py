"""The key of a target: what changes the code counts, what only names the host does not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

_IGNORED = frozenset(
    {"mtriple", "tag", "keys", "libs", "device", "model", "system-lib", "from_device"}
)


class TargetKey(msgspec.Struct, frozen=True):
    """`digest` is 64 hexadecimal digits; `slug` is for people and for object names."""

    digest: str
    slug: str


def target_key(attributes: Mapping[str, Any]) -> TargetKey:
    """The key of TVM's target attributes, whatever their order."""
    text = json.dumps(_canonical(attributes), sort_keys=True, separators=(",", ":"))
    arch = str(attributes.get("arch") or attributes.get("mcpu") or "generic")
    slug = re.sub(r"[^a-z0-9_]+", "_", f"{attributes['kind']}-{arch}".lower().replace("-", "--", 1))
    slug = slug.replace("__", "-", 1)
    return TargetKey(hashlib.sha256(b"ms-tk1" + text.encode()).hexdigest(), slug)


def _canonical(attributes: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in attributes.items() if name not in _IGNORED}
    if "mattr" in kept:
        kept["mattr"] = sorted(str(feature) for feature in kept["mattr"])
    if isinstance(kept.get("host"), Mapping):
        kept["host"] = kept["host"].get("kind")
    return kept
