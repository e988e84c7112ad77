"""Fuzzing of everything that reads bytes or names of the shared cache.

    python -m benchmarks.cache.fuzz_cache [--cases 1000000] [--seed 0]

Cases are made from valid records, segments and names by structured and by blind mutations, and from
nothing. Each must be accepted and then hold to every promise, or be refused with a reason, within
100 ms of processor time; the process must not grow. Prints Markdown tables, and ends
with status 1 and the seed of the first case that broke a promise.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import get_args

import psutil

from benchmarks.kit.command import command_line
from benchmarks.kit.fuzz_cases import line_case, name_case, segment_case, values_case
from tunegate_cache.format import names, segment
from tunegate_cache.format import record_codec as wire
from tunegate_cache.format.decisions import SamplingInstruction, SamplingKind, check_decisions
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.validate import MAX_RECORD_BYTES, refusal, refusal_of_text

MAX_MS = 100.0
MAX_GROWTH_BYTES = 32 << 20
WARM = 2_000
"""Cases before memory is first measured."""
SHARES = {"line": 45, "text": 15, "values": 10, "segment": 12, "name": 10, "decisions": 8}


class BrokenPromiseError(Exception):
    """Names the promise of the cache that does not hold for what it has accepted."""


class Tally:
    """Counts of one kind of case: by reason ("" is accepted), and the slowest."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.slowest_ms = 0.0

    @property
    def cases(self) -> int:
        return self.reasons.total()


# checks: "" is accepted, any other text is the reason of the refusal ----------


def check_line(line: bytes) -> str:
    decoded = wire.decode_records(line)
    if isinstance(decoded, RefusedLine):
        return decoded.reason
    require(refusal(decoded) is None, "an accepted record breaks a rule")
    require(
        wire.decode_records(wire.encode_record(decoded)) == decoded,
        "an accepted record does not survive",
    )
    return ""


def check_segment(body: bytes, named: str) -> str:
    try:
        contents = segment.unpack_segment(body, named)
    except segment.CorruptSegmentError as error:
        return str(error)
    require(segment.segment_digest(body) == named, "a body of another name is used")
    require(all(refusal(record) is None for record in contents.records), "a bad record is used")
    return ""


def check_name(name: str) -> str:
    parsed = names.parse_segment(name)
    if parsed is None:
        return "no segment"
    require(parsed.name == name, "a name is not what it says")
    require(names.zone_problem(parsed.zone) is None, "a zone is none")
    return ""


def check_decided(rng: random.Random) -> str:
    kinds = get_args(SamplingKind)
    template = [
        SamplingInstruction(
            index=3 * at,
            kind=rng.choice(kinds),
            n=rng.randrange(1, 3),
            max_innermost=rng.choice((0, 16, 64)),
            extent=rng.choice((None, 64)),
            candidates=4,
        )
        for at in range(rng.randrange(3))
    ]
    decisions = [
        (i.index, tuple(rng.choices((-3, -2, -1, 0, 1, 4, 16, 64, 2**31, 2**64), k=i.n)))
        for i in template
    ]
    if rng.random() < 0.3:
        decisions.insert(0, (rng.choice((-3, 0, 1, 13, 10**8)), (1,)))
    reason = check_decisions(decisions, template)
    if reason is not None:
        return "decisions that do not fit"
    require([i for i, _ in decisions] == [i.index for i in template], "another instruction")
    for (_, values), made in zip(decisions, template, strict=True):
        if made.kind.endswith("tile"):
            require(all(1 <= v < 2**31 for v in values) and len(values) == made.n, "a bad factor")
        else:
            require(-2 <= values[0] < 64, "a bad choice")
    return ""


def require(kept: bool, promise: str) -> None:
    if not kept:
        raise BrokenPromiseError(promise)


# the run ----------------------------------------------------------------------


def prepared(kind: str, rng: random.Random) -> Callable[[], str]:
    """A case that is made, and waits to be tried: only the trial is timed."""
    match kind:
        case "line":
            line = line_case(rng)
            return lambda: check_line(line)
        case "text":
            text = line_case(rng)[:MAX_RECORD_BYTES]  # longer ones are not even read
            return lambda: refusal_of_text(text) or ""
        case "values":
            record = values_case(rng)
            return lambda: refusal(record) or ""
        case "segment":
            body, named = segment_case(rng)
            return lambda: check_segment(body, named)
        case "name":
            name = name_case(rng)
            return lambda: check_name(name)
        case _:
            return lambda: check_decided(rng)


def fuzz(cases: int, seed: int) -> tuple[dict[str, Tally], int]:
    """The counts, and the bytes by which the process grew. Raises what broke, with the seed of its
    case as a note."""
    tallies = {kind: Tally() for kind in SHARES}
    kinds = random.Random(seed).choices(list(SHARES), weights=list(SHARES.values()), k=cases)
    at_first = 0
    for number, kind in enumerate(kinds):
        case = prepared(kind, random.Random(f"{seed}/{number}"))
        started = time.thread_time()
        try:
            reason = case()
            milliseconds = (time.thread_time() - started) * 1e3
            require(milliseconds <= MAX_MS, f"a case took {milliseconds:.0f} ms")
        except Exception as error:
            error.add_note(f"{kind} case {number} of seed {seed}")
            raise
        tallies[kind].reasons[reason] += 1
        tallies[kind].slowest_ms = max(tallies[kind].slowest_ms, milliseconds)
        if number == WARM:
            at_first = psutil.Process().memory_info().rss
    grown = psutil.Process().memory_info().rss - at_first if at_first else 0
    require(grown <= MAX_GROWTH_BYTES, f"the process grew by {grown >> 20} MiB")
    return tallies, grown


def tables(tallies: dict[str, Tally]) -> Iterator[str]:
    yield "| What is read | Cases | Accepted | Refused | Slowest, ms |"
    yield "|---|---:|---:|---:|---:|"
    for kind, tally in tallies.items():
        accepted = tally.reasons[""]
        yield (
            f"| {kind} | {tally.cases:,} | {accepted:,} | {tally.cases - accepted:,} "
            f"| {tally.slowest_ms:.1f} |"
        )
    yield ""
    yield "| What is read | Reason | Cases |"
    yield "|---|---|---:|"
    for kind, tally in tallies.items():
        for reason, count in tally.reasons.most_common():
            yield f"| {kind} | {reason or '(accepted)'} | {count:,} |"


def main() -> int:
    options = command_line(__doc__, cases=1_000_000, seed=0)
    started = time.monotonic()
    tallies, grown = fuzz(options.cases, options.seed)
    print("\n".join(tables(tallies)))
    seconds = time.monotonic() - started
    print(f"\n{options.cases:,} cases of seed {options.seed} in {seconds:.0f} s", end="; ")
    print(f"the process grew by {grown / (1 << 20):.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
