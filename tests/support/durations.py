"""The slow tests, from recorded times: `make test` leaves them out.

tests/durations.json has the seconds of the slow ones and the few that `make test` keeps although
they are slow, with the reason. tests/support/record_durations.py writes it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pytest

FILE = Path(__file__).resolve().parents[1] / "durations.json"

# A test that is not in the file takes about this long.
_FAST_SECONDS = 0.1


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """`slow` are seconds of a test, by node id, with or without its parameters, or by the path of
    a file or folder all of whose tests are slow. `smoke` are reasons, by node id."""

    slow: Mapping[str, float]
    smoke: Mapping[str, str]


def load(file: Path = FILE) -> Durations:
    return msgspec.json.decode(file.read_bytes(), type=Durations)


def mark_slow(items: Iterable[pytest.Item], durations: Durations) -> None:
    for item in items:
        if is_slow(item.nodeid, durations):
            item.add_marker(pytest.mark.slow)


def is_slow(test: str, durations: Durations) -> bool:
    return test not in durations.smoke and any(key in durations.slow for key in _keys(test))


def shard(tests: Iterable[str], number: int, count: int, durations: Durations) -> set[str]:
    """Returns the tests of shard `number` of `count`. The tests of a file stay together; the
    longest file goes first, each to the shard that has the least to do so far."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.split("::")[0], []).append(test)
    seconds = {
        file: sum(_seconds(test, durations) for test in inside) for file, inside in files.items()
    }
    shards: list[set[str]] = [set() for _ in range(count)]
    loads = [0.0] * count
    for file in sorted(files, key=lambda each: (-seconds[each], each)):
        least = loads.index(min(loads))
        loads[least] += seconds[file]
        shards[least].update(files[file])
    return shards[number - 1]


def _seconds(test: str, durations: Durations) -> float:
    return next(
        (durations.slow[key] for key in _keys(test) if key in durations.slow), _FAST_SECONDS
    )


def _keys(test: str) -> list[str]:
    """Returns the test, with and without its parameters, its file and its folders."""
    path = Path(test.split("::", maxsplit=1)[0])
    return [
        test,
        test.split("[", maxsplit=1)[0],
        path.as_posix(),
        *(f"{each.as_posix()}/" for each in path.parents),
    ]
