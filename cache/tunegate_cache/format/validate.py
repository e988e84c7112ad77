"""The rules that a decoded record must satisfy before anything uses it, in plain Python, and the
errors of bytes that cannot be decoded."""

import json
import math
import re
from itertools import pairwise

import msgspec

from tunegate_cache.format.records import TuningRecord

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of msgspec on bytes that are not JSON of the wanted type."""
KNOWN_VERSION = 1
MAX_RECORD_BYTES = 64 * 1024
_MAX_DEPTH = 8
_CONTAINERS = (dict, list)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_NANOSECONDS = 10**13
_MAX_TIMES = 64
_MAX_DECISIONS = 256
_MAX_FACTORS = 32
_MAX_EXTENTS = 4096
_LARGEST = 2**53
_MAX_INTEGER = len(str(-_LARGEST))
_MIN_DECISION, _MIN_FACTOR = -2, 1
"""A single value may be "inline" (-2) or "root" (-1). Several values are factors of a loop, and a
factor of 0 crashes the compiler by a division."""


def refusal(record: TuningRecord) -> str | None:
    """Returns why these values are unusable, or None."""
    if not 1 <= record.version <= KNOWN_VERSION:
        return "unknown version"
    if not all(_DIGEST.fullmatch(digest) for digest in _digests(record)):
        return "bad digest"
    return (
        _bad_times(record) or _bad_decisions(record) or _bad_extents(record) or _bad_facts(record)
    )


def refusal_of_text(text: bytes) -> str | None:
    """Returns why a line of JSON is unusable, or None, whatever its values mean: a duplicate key, a
    number out of range, not finite or minus zero, or too much nesting, in known and unknown fields
    alike."""
    try:
        content: object = json.loads(
            text,
            object_pairs_hook=_without_duplicates,
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_bounded_integer,
        )
    except RecursionError:
        return "nested too deep"
    except _RefusedTextError as error:
        return str(error)
    except ValueError:
        return "not JSON"
    if _is_deeper(content, _MAX_DEPTH):
        return "nested too deep"
    return None


class _RefusedTextError(ValueError):
    """Well-formed JSON that two readers could understand differently."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        message = "duplicate key"
        raise _RefusedTextError(message)
    return members


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        message = "number not finite"
        raise _RefusedTextError(message)
    if number == 0 and text.startswith("-"):
        message = "minus zero"
        raise _RefusedTextError(message)
    return number


def _bounded_integer(text: str) -> int:
    """Returns the number of a text. A long text is not converted: that takes time quadratic in its
    digits."""
    number = int(text) if len(text) <= _MAX_INTEGER else None
    if number is None or not -_LARGEST <= number <= _LARGEST:
        message = "number out of range"
        raise _RefusedTextError(message)
    if text == "-0":
        message = "minus zero"
        raise _RefusedTextError(message)
    return number


def _is_deeper(content: object, levels: int) -> bool:
    if not isinstance(content, _CONTAINERS):
        return False
    parts = content.values() if isinstance(content, dict) else content
    inner = [part for part in parts if isinstance(part, _CONTAINERS)]
    return levels == 0 or any(_is_deeper(part, levels - 1) for part in inner)


def _digests(record: TuningRecord) -> list[str]:
    digests = [record.key.workload, record.key.target, record.shape.skeleton]
    # An empty template is the default schedule, which has no decisions.
    return [*digests, record.template] if record.template or record.decisions else digests


def _bad_times(record: TuningRecord) -> str | None:
    times = record.run_nanoseconds
    if record.status != "ok":
        return "times of a failure" if times else None
    if not 1 <= len(times) <= _MAX_TIMES:
        return "bad number of times"
    if not all(1 <= time <= _MAX_NANOSECONDS for time in times):
        return "impossible time"
    return None


def _bad_decisions(record: TuningRecord) -> str | None:
    decisions = record.decisions
    if len(decisions) > _MAX_DECISIONS:
        return "too many decisions"
    indices = [index for index, _ in decisions]
    if any(not 0 <= index <= _LARGEST for index in indices):
        return "bad decision"
    if any(later <= earlier for earlier, later in pairwise(indices)):
        return "decisions out of order"
    for _, values in decisions:
        if not 1 <= len(values) <= _MAX_FACTORS:
            return "bad decision"
        least = _MIN_DECISION if len(values) == 1 else _MIN_FACTOR
        if not all(least <= value <= _LARGEST for value in values):
            return "decision out of range"
    return None


def _bad_extents(record: TuningRecord) -> str | None:
    extents = record.shape.extents
    if len(extents) > _MAX_EXTENTS or not all(1 <= extent <= _LARGEST for extent in extents):
        return "bad extents"
    return None


def _bad_facts(record: TuningRecord) -> str | None:
    """Returns what is wrong with the facts that are only shown or sorted by, or None: numbers must
    be possible, text printable."""
    device, toolchain, source = record.device, record.toolchain, record.source
    numbers = (device.units, device.memory_bytes, record.measured_at)
    if not all(0 <= number <= _LARGEST for number in numbers):
        return "bad device or date"
    texts = (device.name, device.driver, device.uuid)
    versions = (toolchain.tvm, toolchain.ffi, toolchain.cuda, toolchain.schedules)
    origin = (source.repository, source.ref, source.commit, source.run)
    are_printable = all(text.isprintable() for text in texts + versions + origin)
    return None if are_printable else "unprintable text"
