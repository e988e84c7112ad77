"""Runs the tests of a room on each mutant of it, and says how many die:
`python -m research.mutation.run --out FILE [--tree DIR]`. The tree is changed while it runs."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

HERE = Path(__file__).parent
PACKAGES = HERE.parents[1] / ".mutation"
# Imported once, before the process divides for each mutant. Nothing of ours is.
HEAVY = ("pytest", "hypothesis", "msgspec", "numpy", "scipy.stats", "onnx", "boto3", "rich", "yaml")
OPTIONS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=quick"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
SECONDS = 240.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=Path.cwd())
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--earlier", type=Path, help="what was found in another checkout")
    options = parser.parse_args()
    earlier = json.loads(options.earlier.read_text()) if options.earlier else {}
    tree, out = options.tree.resolve(), options.out.resolve()
    mutants = _list_mutants(tree)
    mutants.sort(key=lambda mutant: mutant["ticket"])  # a run that is cut short has all rooms
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    for name in HEAVY:
        importlib.import_module(name)
    results = json.loads(out.read_text()) if out.exists() else {}
    run_by: dict[str, dict[str, set[str]]] = {}
    for mutant in mutants:
        if mutant["name"] in results:
            continue
        room = mutant["tests"]
        if room not in run_by:
            run_by[room] = _tests_of_functions(tree, room)
        known = earlier.get(mutant["name"], {}).get("by", "")
        results[mutant["name"]] = _outcome(tree, mutant, run_by[room], known) | {
            key: mutant[key] for key in ("room", "path", "line")
        }
        out.write_text(json.dumps(results, indent=1) + "\n")
    counts = Counter((each["room"], each["outcome"]) for each in results.values())
    for (room, outcome), count in sorted(counts.items()):
        sys.stdout.write(f"{room} {outcome} {count}\n")


def _list_mutants(tree: Path) -> list[dict[str, Any]]:
    if not PACKAGES.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(PACKAGES)]
        subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
    command = [sys.executable, "-m", "research.mutation.mutants", str(tree)]
    environment = os.environ | {"PYTHONPATH": str(PACKAGES)}
    listed = subprocess.run(
        command, env=environment, cwd=HERE.parents[1], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in listed.stdout.splitlines()]


def _outcome(
    tree: Path, mutant: dict[str, Any], run_by: dict[str, set[str]], known: str
) -> dict[str, str]:
    """Returns whether a test noticed the mutant, and which."""
    path = tree / mutant["path"]
    source = path.read_text("utf-8")
    tests = _tests_to_run(mutant, source, run_by)
    if not tests:
        return {"outcome": "survived", "by": "no test runs it"}
    path.write_text(mutant["source"], "utf-8")
    try:
        for part in _in_order(tests, Path(mutant["path"]).stem, known):
            told = _in_a_child(partial(_run_tests, part))
            if told is None:
                return {"outcome": "killed", "by": "time"}
            failed = [line for line in told.splitlines() if line.startswith("failed ")]
            if failed or "code 0" not in told:
                by = failed[0].removeprefix("failed ") if failed else told
                return {"outcome": "killed", "by": by}
    finally:
        path.write_text(source, "utf-8")
    return {"outcome": "survived", "by": f"{len(tests)} tests pass"}


def _in_order(tests: set[str], stem: str, known: str) -> Iterator[set[str]]:
    """Yields the tests in the order in which they are likely to notice: the one that did in another
    checkout, those of the file that has the module's name or else the most of them, all others."""
    name = known.rpartition("::")[2]
    first = {test for test in tests if name and test.endswith(f"::{name}")}
    files = Counter(test.split("::")[0] for test in tests - first)
    if files:
        likely = max(files, key=lambda file: (Path(file).stem == f"test_{stem}", files[file]))
        second = {test for test in tests - first if test.startswith(f"{likely}::")}
        yield from filter(None, (first, second, tests - first - second))
    else:
        yield first


def _tests_to_run(mutant: dict[str, Any], source: str, run_by: dict[str, set[str]]) -> set[str]:
    """Returns the tests that run the function of the mutant; of what runs when the module is
    imported, those that run any of its functions."""
    line, path = mutant["line"], mutant["path"]
    inner = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]
    if inner:
        innermost = max(inner, key=lambda node: node.lineno)
        return run_by.get(f"{path}:{innermost.name}", set())
    return set().union(*(run_by[each] for each in run_by if each.startswith(f"{path}:")))


def _tests_of_functions(tree: Path, room: str) -> dict[str, set[str]]:
    """Returns, for each function that the tests of a room run, the tests that run it."""
    told = _in_a_child(lambda tell: _record_tests(tree, room, tell), seconds=1800)
    if told is None or "code 0" not in told:
        raise SystemExit(f"{room}: the tests fail without any mutant: {told}")
    run_by: dict[str, set[str]] = defaultdict(set)
    for line in told.splitlines():
        if line.startswith("runs "):
            _, function, test = line.split(" ", 2)
            run_by[function].add(test)
    return run_by


def _in_a_child(work: Callable[[int], None], seconds: float = SECONDS) -> str | None:
    """Returns what a fork of this process writes to the pipe that it is given; None where it takes
    longer than the limit."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(read)
        try:
            work(write)
        except BaseException as error:  # noqa: BLE001  # the parent says it
            _tell(write, f"{error!r}\nend")
        finally:
            os._exit(0)
    os.close(write)
    told, until = b"", time.monotonic() + seconds
    try:
        while select.select([read], [], [], max(0.0, until - time.monotonic()))[0]:
            part = os.read(read, 1 << 16)
            told += part
            if not part or told.endswith(b"end\n"):
                return told.decode()
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)


def _run_tests(tests: set[str], tell: int) -> None:
    import pytest  # noqa: PLC0415  # the parent has loaded it

    class Chosen:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = [each for each in items if each.nodeid in tests]

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                _tell(tell, f"failed {report.nodeid}")

    files = sorted({test.split("::")[0] for test in tests})
    _tell(tell, f"code {int(pytest.main([*OPTIONS, *files], plugins=[Chosen()]))}\nend")


def _record_tests(tree: Path, room: str, tell: int) -> None:
    import pytest  # noqa: PLC0415  # the parent has loaded it

    class Recorder:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            met: set[CodeType] = set()
            sys.setprofile(lambda frame, event, _: met.add(frame.f_code))
            try:
                return (yield)
            finally:
                sys.setprofile(None)
                for code in met:
                    path = code.co_filename.removeprefix(f"{tree}/")
                    if path.startswith(("plugin/", "cache/")):
                        _tell(tell, f"runs {path}:{code.co_name} {item.nodeid}")

    arguments = [*OPTIONS, "-m", "not slow and not gpu_job and not pipelines and not proof", room]
    _tell(tell, f"code {int(pytest.main(arguments, plugins=[Recorder()]))}\nend")


def _tell(pipe: int, line: str) -> None:
    rest = f"{line}\n".encode()
    while rest:
        rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    main()
