"""Makes docs/benchmarks.md of the results: `make figures`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from benchmarks.kit.markdown_tables import drawn
from benchmarks.kit.results import RESULTS, ROOT, Result, load

PAGE = ROOT / "docs" / "benchmarks.md"
GROUPS = (
    "Papers",
    "Latency",
    "Tuning",
    "Cost models",
    "Kernels",
    "Real models",
    "Gate",
    "Cache",
    "Processes",
)
HEAD = """\
# Benchmarks
<!-- made by `make figures` from benchmarks/results -->
Figures of today, each with its command, to be run in the root of a checkout.
A load over 1 means that other work kept the machine busy.
Every benchmark takes `--save NAME`, which replaces the figures of `benchmarks/results/NAME.json`.
`make figures` makes this page of them. Earlier figures, and how things were found, are in the
[archive](benchmarks-archive.md).
"""


def main() -> None:
    PAGE.write_text(page(load(path) for path in sorted(RESULTS.glob("*.json"))))


def page(results: Iterable[Result]) -> str:
    """The page: what each group answers, then the tables. Raises `ValueError` for a result without
    its words, or in a group that there is not."""
    found = list(results)
    for result in found:
        _check(result)
    grouped = [(group, [each for each in found if each.group == group]) for group in GROUPS]
    filled = [(group, members) for group, members in grouped if members]
    contents = [_contents(group, members) for group, members in filled]
    sections = [_section(group, members) for group, members in filled]
    return "\n".join([HEAD, *contents, "", *sections])


def anchor(title: str) -> str:
    """The name that Markdown gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _check(result: Result) -> None:
    missing = [name for name in ("title", "says", "compared") if not getattr(result, name)]
    if missing or result.group not in GROUPS:
        raise ValueError(
            f"{result.title}: write {', '.join(missing) or 'its group'} into its file in "
            f"benchmarks/results; groups are {', '.join(GROUPS)}"
        )


def _contents(group: str, members: list[Result]) -> str:
    lines = [f"- [{each.title}](#{anchor(each.title)})" for each in members]
    return "\n".join([f"\n**{group}**\n", *lines])


def _section(group: str, members: list[Result]) -> str:
    return "\n".join([f"## {group}\n", *map(_result, members)])


def _result(result: Result) -> str:
    where = f"{result.machine}; {result.date}; commit {result.commit}"
    tables = "\n\n".join(drawn(table) for table in result.tables)
    return (
        f"### {result.title}\n{result.says}\n\n{tables}\n\n"
        f"{result.compared} `{result.command}` ({where})\n"
    )


if __name__ == "__main__":
    main()
