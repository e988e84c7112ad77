"""The key of a target: it contains what changes the code, not what only names the host."""

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
    """Returns the key of the compiler's target attributes, whatever their order."""
    text = json.dumps(_canonical(attributes), sort_keys=True, separators=(",", ":"))
    kind = str(attributes["kind"])
    arch = str(attributes.get("arch") or attributes.get("mcpu") or "generic")
    slug = f"{_word(kind)}-{_word(arch)}"
    return TargetKey(hashlib.sha256(b"ms-tk1" + text.encode()).hexdigest(), slug)


_THREADS = range(1, 513)
_ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120")


class OtherTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target that differs in one attribute: `name` is "threads" or "architecture", with its value
    `there` and `here`."""

    digest: str
    name: str
    there: str
    here: str


def neighbours(attributes: Mapping[str, Any]) -> tuple[OtherTarget, ...]:
    """Returns the targets with other threads, or on a GPU another architecture: those of machines
    of another size. A digest reveals no attributes, so these are tried."""
    if "num-cores" in attributes:
        key, name, values = "num-cores", "threads", tuple[object, ...](_THREADS)
    elif attributes.get("kind") == "cuda" and "arch" in attributes:
        key, name, values = "arch", "architecture", _ARCHITECTURES
    else:
        return ()
    here = attributes[key]
    return tuple(
        OtherTarget(
            digest=target_key({**attributes, key: value}).digest,
            name=name,
            there=str(value),
            here=str(here),
        )
        for value in values
        if value != here
    )


def _canonical(attributes: Mapping[str, Any]) -> dict[str, Any]:
    relevant = {name: value for name, value in attributes.items() if name not in _IGNORED}
    if "mattr" in relevant:
        relevant["mattr"] = sorted(set(_features(relevant["mattr"])))
    if isinstance(relevant.get("host"), Mapping):
        relevant["host"] = relevant["host"].get("kind")
    return {name: value for name, value in relevant.items() if value is not None}


def _features(value: str | Iterable[object]) -> list[str]:
    features = value.split(",") if isinstance(value, str) else value
    return [str(feature).strip() for feature in features]


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower())
