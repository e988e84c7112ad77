"""Nothing malformed gets past the cache: each case is refused with a counted reason, by code that
has no compiler near."""

import re
import sys
import time
from pathlib import Path

import pytest

from tests.security.malformed_corpus import CORPUS, GOOD, SMUGGLED
from tests.security.malformed_objects import BODIES, NAMES, ODD_LINES, squeezed
from tests.support.programs import run_program
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format import names, segment
from tunegate_cache.format import record_codec as wire
from tunegate_cache.format.decisions import SamplingInstruction, check_decisions
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import Decision, ExactHit, Miss, TuningRecord
from tunegate_cache.format.segment import CorruptSegmentError
from tunegate_cache.protocol.tuning_cache import TuningCache
from tunegate_cache.stores.memory import MemoryStore

SLOWEST_SECONDS = 0.5
"""Seconds of the processor: what else runs does not count."""
TEMPLATE = (
    SamplingInstruction(index=3, kind="perfect-tile", n=2, max_innermost=64, extent=64),
    SamplingInstruction(index=5, kind="categorical", candidates=4),
)


def cache_with(body: bytes, tmp_path: Path, digest: str = "") -> TuningCache:
    store = MemoryStore()
    named = digest or segment.segment_digest(body)
    name = names.segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=named)
    store.write(name.name, body)
    return cache_over(store, tmp_path, mode="ro")


@pytest.mark.parametrize("name", CORPUS)
def test_a_malformed_line_is_refused_with_its_reason_and_soon(name: str) -> None:
    case = CORPUS[name]
    started = time.process_time()
    decoded = wire.decode_records(case.line)
    assert time.process_time() - started < SLOWEST_SECONDS
    assert isinstance(decoded, RefusedLine)
    assert decoded.reason == case.reason


@pytest.mark.parametrize("name", [name for name in CORPUS if CORPUS[name].line])
def test_a_run_counts_what_is_malformed_and_uses_what_is_good(name: str, tmp_path: Path) -> None:
    case = CORPUS[name]
    lines = case.line.split(b"\n") if case.reason == "not a record" else [case.line]
    cache = cache_with(squeezed(b"\n".join([*lines, GOOD])), tmp_path)
    assert cache.lookup([(make_key(), make_shape())])[make_key()] == ExactHit((make_record(),))
    assert set(cache.statistics.refused) == {case.reason}


@pytest.mark.parametrize("name", SMUGGLED)
def test_nothing_but_the_known_fields_of_a_line_comes_through(name: str) -> None:
    decoded = wire.decode_records(SMUGGLED[name])
    assert decoded == make_record()
    assert isinstance(decoded, TuningRecord)
    assert wire.encode_record(decoded) == GOOD


@pytest.mark.parametrize(
    "decisions",
    [
        ((3, (4, 16)), (13, (2,))),
        ((3, (4, 16)), (100_000_000, (2,))),
        ((3, (4, 16)),),
        ((3, (4, 16)), (5, (2,)), (6, (1,))),
        (),
        ((3, (4,)), (5, (2,))),
        ((3, (4, 4, 4)), (5, (2,))),
        ((3, (1, 65)), (5, (2,))),
        ((3, (2**53, 1)), (5, (2,))),
        ((3, (4, 16)), (5, (4,))),
        ((3, (4, 16)), (5, (-1,))),
        ((3, (4, 16)), (5, (2**31,))),
        ((3, (2,)), (5, (4, 16))),
    ],
)
def test_what_a_line_may_say_but_the_template_does_not_ask_is_refused(
    decisions: tuple[Decision, ...],
) -> None:
    record = make_record(decisions=decisions)
    assert wire.decode_records(wire.encode_record(record)) == record
    assert check_decisions(decisions, TEMPLATE) is not None


def test_the_template_of_these_cases_takes_what_is_right() -> None:
    assert check_decisions(make_record().decisions, TEMPLATE) is None


@pytest.mark.parametrize("name", BODIES)
def test_a_malformed_body_is_a_corrupt_segment(name: str, tmp_path: Path) -> None:
    case = BODIES[name]
    with pytest.raises(CorruptSegmentError, match=case.message):
        segment.unpack_segment(case.body, case.named)
    if case.named != case.named.lower():
        return  # such a name is not even parsed
    cache = cache_with(case.body, tmp_path, case.named)
    assert cache.lookup([(make_key(), make_shape())])[make_key()] == Miss("corrupt")


@pytest.mark.parametrize("name", ODD_LINES)
def test_an_odd_body_gives_good_records_and_counted_lines_only(name: str) -> None:
    contents = segment.unpack_segment(ODD_LINES[name], segment.segment_digest(ODD_LINES[name]))
    assert set(contents.records) <= {make_record()}
    assert {refused.reason for refused in contents.refused} <= {"not a record"}


@pytest.mark.parametrize("name", NAMES)
def test_a_malformed_name_is_no_segment(name: str) -> None:
    started = time.process_time()
    assert names.parse_segment(NAMES[name]) is None
    assert time.process_time() - started < SLOWEST_SECONDS


def test_no_case_needs_the_compiler() -> None:
    script = """
import sys
sys.modules["tvm"] = sys.modules["tvm_ffi"] = None  # an import of it fails
from tests.security.malformed_corpus import CORPUS
from tunegate_cache.format import record_codec as wire
assert all(isinstance(wire.decode_records(case.line), wire.RefusedLine) for case in CORPUS.values())
print(len(CORPUS))
"""
    done = run_program([sys.executable, "-c", script])
    assert (done.returncode, done.stdout) == (0, f"{len(CORPUS)}\n"), done.stderr


# The fuzzer of the cache, for a few seconds.

ROOT = Path(__file__).resolve().parents[2]


def test_twenty_thousand_mutants_are_taken_or_refused_and_none_does_harm() -> None:
    done = run_program(
        [sys.executable, "-m", "benchmarks.cache.fuzz_cache", "--cases", "20000", "--seed", "1"],
        cwd=ROOT,
        code=0,
    )
    rows = re.findall(r"^\| (\w+) \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \|", done.stdout, re.MULTILINE)
    expected = ["line", "text", "values", "segment", "name", "decisions"]
    assert [kind for kind, _, _ in rows] == expected
    for _, accepted, refused in rows:  # a fuzzer whose cases all end the same way finds nothing
        assert int(accepted.replace(",", "")) > 50
        assert int(refused.replace(",", "")) > 50
