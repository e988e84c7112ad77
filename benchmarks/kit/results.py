"""The results of a benchmark, as a file that the page of figures is made from.

`--save NAME` of any benchmark keeps the tables that it printed as `results/NAME.json`, with the
command, the machine, the date and the commit; with `--merge` beside the rows that are there of what
was not measured this time. The words (`title`, `group`, `says`, `compared`) are
written by hand, once: a later run keeps them, and replaces the figures.
"""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import msgspec

from benchmarks.kit.markdown_tables import Table, tables

RESULTS = Path(__file__).resolve().parent.parent / "results"
ROOT = RESULTS.parent.parent


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question with its figures. `says` is the answer, and what a reader must know to believe
    it; `compared` tells what was compared, and how."""

    title: str
    group: str
    says: str
    compared: str
    command: str
    machine: str
    date: str
    commit: str
    tables: tuple[Table, ...]
    schema: int = 1


class Tee:
    """Prints, and keeps what it has printed."""

    def __init__(self, printer: TextIO) -> None:
        self.text = ""
        self._printer = printer

    def write(self, text: str) -> int:
        self.text += text
        return self._printer.write(text)

    def flush(self) -> None:
        self._printer.flush()


def load(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)


def save(name: str, printed: str, folder: Path = RESULTS, *, is_merged: bool = False) -> Path:
    """Keeps the tables in `printed` as the result of that name. Raises `ValueError` where there is
    none, as when the benchmark failed before its first row."""
    found = tables(printed)
    if not found:
        raise ValueError(f"{name}: nothing is saved, no table was printed")
    path = folder / f"{name}.json"
    known = load(path) if path.is_file() else Result(name, "", "", "", "", "", "", "", ())
    written = msgspec.structs.replace(
        known,
        command=command(sys.argv),
        machine=machine(),
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=commit(),
        tables=merged(known.tables, found) if is_merged else found,
    )
    write(path, written)
    return path


def merged(known: tuple[Table, ...], found: tuple[Table, ...]) -> tuple[Table, ...]:
    """The tables that were found, with the known rows of what none of theirs is about, by the first
    cell. A row takes the place that its like had. Tables of other columns are not merged."""
    if [table.columns for table in known] != [table.columns for table in found]:
        return found
    return tuple(_merged(*pair) for pair in zip(known, found, strict=True))


def _merged(known: Table, found: Table) -> Table:
    rows: dict[str, list[tuple[str, ...]]] = {row[0]: [] for row in (*known.rows, *found.rows)}
    new = {row[0] for row in found.rows}
    for row in (*(row for row in known.rows if row[0] not in new), *found.rows):
        rows[row[0]].append(row)
    return msgspec.structs.replace(found, rows=tuple(row for its in rows.values() for row in its))


def saved_rows(folder: Path = RESULTS) -> dict[str, tuple[str, ...]]:
    """The rows that earlier runs kept under the name that this one saves to, by their first cell:
    they need not be measured again."""
    named = [after for before, after in pairwise(sys.argv) if before == "--save"]
    paths = [folder / f"{name}.json" for name in named]
    tables = [table for path in paths if path.is_file() for table in load(path).tables]
    return {row[0]: row for table in tables for row in table.rows}


def write(path: Path, result: Result) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def command(words: list[str]) -> str:
    """The command line as it was typed, but for the option that saves it."""
    program, *options = words
    options = [option for option in options if option != "--merge"]
    if "--save" in options:
        at = options.index("--save")
        options = [*options[:at], *options[at + 2 :]]
    return shlex.join(["python", "-m", module_of(Path(program)), *options])


def module_of(program: Path) -> str:
    """The name that `python -m` takes, of a file of the benchmarks."""
    return ".".join(program.resolve().relative_to(ROOT).with_suffix("").parts)


def machine() -> str:
    """The processor, its cores, and how many processes wanted to run in the last five minutes."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.machine()
    return f"{os.cpu_count()} cores of {name}, load {os.getloadavg()[1]:.1f}"


def commit() -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()
