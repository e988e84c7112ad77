"""Cases for fuzz_cache.py: valid records, segments and names, and what mutation makes of them."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re

import msgspec
import zstandard

from tunegate_cache.format import names, segment
from tunegate_cache.format import record_codec as wire
from tunegate_cache.format.records import (
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)

ODD_NUMBERS = (
    "-1 0 -0 1 1.0 1e0 -0.0 1e999 -1e999 1e-999 NaN Infinity -Infinity true false null 2147483648 "
    "9007199254740992 9007199254740993 -9007199254740993 9223372036854775808 1" + "0" * 400
).split()
WHOLE = [number for number in ODD_NUMBERS if number.lstrip("-").isdigit()]
NUMBER = re.compile('"@([^"]*)"')
"""The form in which a number that JSON has no value for waits in a tree."""
ODD_TEXTS = (
    *(
        "",
        "..",
        "../../x",
        "\0",
        "\n",
        "\x1b[2J",
        "\u202e",
        "\u200b",
        "\ud800",
        "\U0010ffff",
        "ünï",
    ),
    *(
        "pragma_import_c",
        "float16",
        "$(id)",
        "{{7*7}}",
        "a" * 300,
        "0" * 64,
        "A" * 64,
        "\uff11" * 64,
    ),
)
ODD_VALUES: tuple[object, ...] = (
    *ODD_TEXTS,
    [],
    {},
    [[]],
    [{}],
    [[3, [0, 1]]],
    [[13, [1]]],
    [[-3, [1]]],
    [1] * 70,
)
BOMBS = [
    zstandard.ZstdCompressor(level=1).compress(unit * (size // len(unit)))
    for unit, size in (
        (b" ", 17 << 20),
        (b"\n", 1 << 28),
        (b"[]\n", 1 << 20),
        (b"\0" * 99, 1 << 22),
    )
]
PIECES = (b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\u", b"\\", b"\xff", b"\0", b"-0", b"1e999")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def valid_record(rng: random.Random) -> TuningRecord:
    ok = rng.random() < 0.8
    places = sorted(rng.sample(range(40), rng.randrange(6)))
    return TuningRecord(
        key=WorkloadKey(digest(f"w{rng.randrange(9)}"), digest("t")),
        shape=WorkloadShape(digest("s"), tuple(rng.choices(range(1, 4096), k=4))),
        template=digest("th"),
        decisions=tuple(
            (at, tuple(rng.choices(range(1, 64), k=rng.randrange(1, 5)))) for at in places
        ),
        run_nanoseconds=tuple(rng.choices(range(1, 10**9), k=3)) if ok else (),
        status="ok" if ok else rng.choice(["timeout", "compile", "runtime", "wrong"]),
        device=DeviceFingerprint(name="a machine", kind="cpu", units=2, memory_bytes=8 << 30),
        toolchain=Toolchain(tvm="0.27.0", ffi="0.1.14"),
        measured_at=1_795_000_000,
        source=Provenance(repository="org/x", ref="refs/heads/main"),
    )


def line_case(rng: random.Random) -> bytes:
    line = wire.encode_record(valid_record(rng))
    kind = rng.random()
    if kind < 0.05:
        return rng.randbytes(rng.randrange(300))
    if kind < 0.10:
        return line
    if kind < 0.80:
        line = with_odd_values(line, rng)
    return line if kind < 0.70 else damaged(line, rng)


def with_odd_values(line: bytes, rng: random.Random) -> bytes:
    """Still JSON for the most part: fields lost, doubled, added, nested, or of another value."""
    tree = json.loads(line)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _mutate(tree, rng)
    text = json.dumps(tree, separators=(",", ":"))
    text = NUMBER.sub(r"\1", text)
    if rng.random() < 0.1:
        at = text.find(",")
        text = text[:at] + text[at:].replace("}", "," + text[1:at] + "}", 1)  # a key twice
    return text.encode(errors="surrogatepass")


def _mutate(tree: dict[str, object], rng: random.Random) -> None:
    place: dict[str, object] | list[object] = tree
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys or rng.random() < 0.1:
            break
        key = rng.choice(keys)
        inner = place[key]  # type: ignore[index,call-overload]
        if not isinstance(inner, dict | list) or rng.random() < 0.3:
            if rng.random() < 0.15:
                del place[key]  # type: ignore[arg-type]
            else:
                place[key] = odd_value(rng, inner)  # type: ignore[index,call-overload]
            return
        place = inner
    if isinstance(place, dict):
        place[rng.choice(ODD_TEXTS[:5])] = odd_value(rng, 1)
    else:
        place.insert(0, odd_value(rng, 1))


def odd_value(rng: random.Random, instead: object) -> object:
    """Mostly of the same type: other types are refused before any value is read."""
    kind = rng.random()
    if kind < 0.7 and isinstance(instead, list):
        return [instead[0] if instead else 1] * rng.choice((0, 1, 2, 33, 65, 257))
    if kind < 0.7 and isinstance(instead, str):
        return rng.choice(ODD_TEXTS)
    if kind < 0.7 and isinstance(instead, int):
        return "@" + rng.choice((*WHOLE, str(instead + rng.randrange(-99, 99))))
    if kind < 0.8:
        return "@" + rng.choice(ODD_NUMBERS)
    if kind < 0.9:
        return copy.deepcopy(rng.choice(ODD_VALUES))
    for _ in range(rng.choice((1, 7, 9, 200))):
        instead = [instead]
    return instead if kind < 0.999 else [instead] * rng.choice((300, 5000, 40_000))


def damaged(body: bytes, rng: random.Random) -> bytes:
    """Bytes changed, lost, doubled, put in or moved, whatever they mean."""
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, to = sorted((rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)))
        short = min(to, at + rng.randrange(1, 9))
        match rng.randrange(6):
            case 0:
                body = body[:at] + rng.randbytes(short - at) + body[short:]
            case 1:
                body = body[:at] + body[short:]
            case 2:
                body = body[:at] + rng.choice(PIECES) + body[at:]
            case 3:
                body = body[:to] + body[at:to] + body[to:]
            case 4:
                body = body[:at] if rng.random() < 0.2 else body[short:] + body[:short]
            case 5 if at < len(body):
                body = body[:at] + bytes([body[at] ^ 1 << rng.randrange(8)]) + body[at + 1 :]
        body = body[: 1 << 18]
    return body


def segment_case(rng: random.Random) -> tuple[bytes, str]:
    kind = rng.random()
    if kind < 0.01:
        body = rng.choice(BOMBS)
    elif kind < 0.1:
        body = rng.randbytes(rng.randrange(400))
    elif kind < 0.5:
        lines = [line_case(rng) for _ in range(rng.randrange(9))]
        body = zstandard.ZstdCompressor(level=1).compress(b"\n".join(lines))
    else:
        body = segment.pack_segment([valid_record(rng) for _ in range(rng.randrange(9))])
    named = segment.segment_digest(body)
    if kind > 0.75:
        body = damaged(body, rng)
        named = named if kind > 0.95 else segment.segment_digest(body)
    return body, named


def name_case(rng: random.Random) -> str:
    zone = rng.choice(["main", "rel", "team/x", "pr/o/r/7", "..", "a/../b", ".partial", "", "é"])
    name = names.segment_name(
        zone,
        digest(str(rng.random())),
        milliseconds=rng.randrange(-(10**12), 10**13),
        writer=f"{rng.randrange(16**8):08x}",
        digest=digest(str(rng.random())),
    ).name
    kind = rng.random()
    if kind < 0.6:
        return name
    if kind < 0.9:
        return damaged(name.encode(), rng).decode(errors=rng.choice(["replace", "ignore"]))
    at = rng.randrange(len(name))
    return name[:at] + rng.choice(ODD_TEXTS) * rng.choice((1, 3, 3000)) + name[at:]


def values_case(rng: random.Random) -> TuningRecord:
    """A record whose types are right and whose values are any."""
    numbers = (-1, 0, 1, 64, 2**31, 2**53, 2**53 + 1, 10**13, 10**400, -(10**400))
    some = tuple(rng.choices(numbers, k=rng.choice((0, 1, 2, 33, 65))))
    word, number = rng.choice(ODD_TEXTS), rng.choice(numbers)
    record = valid_record(rng)
    changes: dict[str, object] = {
        "version": number,
        "key": WorkloadKey(word, record.key.target),
        "shape": WorkloadShape(record.shape.skeleton, some * rng.choice((1, 200))),
        "template": word,
        "decisions": tuple((n, some) for n in sorted(some)) * rng.choice((1, 9)),
        "run_nanoseconds": some,
        "status": rng.choice(["ok", "timeout"]),
        "device": msgspec.structs.replace(record.device, name=word, units=number),
        "toolchain": Toolchain(tvm=word, ffi=word),
        "measured_at": number,
        "source": Provenance(ref=word),
    }
    chosen = rng.sample(list(changes), rng.choice((0, 1, 1, 2)))
    return msgspec.structs.replace(record, **{name: changes[name] for name in chosen})
