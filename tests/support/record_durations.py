"""Writes tests/durations.json from JUnit files of a run of all tests:

    python -m pytest -n 2 -m "not pipelines and not proof" --junitxml=full.xml
    python -m tests.support.record_durations full.xml

The longest tests are slow, as many as it takes for the rest to fit into `--rest` seconds of one
process.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tests.support.durations import FILE, Durations, load

ROOT = FILE.parents[1]


def seconds_of_tests(reports: Iterable[Path]) -> dict[str, float]:
    """Returns the seconds of every test that ran, by node id."""
    return {
        test: float(case.get("time", 0))
        for report in reports
        for case in ElementTree.parse(report).iter("testcase")
        if case.find("skipped") is None and (test := node_id(case)) is not None
    }


def node_id(case: ElementTree.Element) -> str | None:
    """Returns the id of a case; JUnit has the path with dots, followed by the class if any."""
    parts = case.get("classname", "").split(".")
    for length in range(len(parts), 0, -1):
        file = "/".join(parts[:length]) + ".py"
        if (ROOT / file).is_file():
            return "::".join([file, *parts[length:], case.get("name", "")])
    return None


def slow_tests(seconds: dict[str, float], rest: float, smoke: Iterable[str]) -> dict[str, float]:
    """Returns the longest tests without which the others take `rest` seconds."""
    left = sum(seconds.values())
    slow = {}
    for test in sorted(seconds.keys() - set(smoke), key=lambda each: (-seconds[each], each)):
        if left <= rest:
            break
        left -= seconds[test]
        slow[test] = round(seconds[test], 1)
    return dict(sorted(slow.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, nargs="+", help="a JUnit file of pytest")
    parser.add_argument(
        "--rest", type=float, default=400, help="seconds that `make test` has in all (%(default)s)"
    )
    options = parser.parse_args()
    smoke = load().smoke
    seconds = seconds_of_tests(options.report)
    durations = Durations(slow=slow_tests(seconds, options.rest, smoke), smoke=smoke)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(durations), indent=2) + b"\n")
    print(
        f"{len(durations.slow)} of {len(seconds)} tests are slow, "
        f"from {min(durations.slow.values(), default=0)} s"
    )


if __name__ == "__main__":
    main()
