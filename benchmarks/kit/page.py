"""Makes docs/benchmarks.md, and a page for each group beside it, of the results: `make figures`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks.kit.markdown_tables import drawn
from benchmarks.kit.results import RESULTS, ROOT, Result, load

PAGE = ROOT / "docs" / "benchmarks.md"
GROUPS = (
    "Papers",
    "Latency",
    "Real models",
    "Runtimes",
    "Tuning",
    "Cost models",
    "Kernels",
    "GPU",
    "Gate",
    "Cache",
    "Processes",
)
MADE = "<!-- made by `make figures` from benchmarks/results -->"
HEAD = f"""\
# Benchmarks
{MADE}
Each line has a question and the answer that was measured. Its link leads to the table, the setup,
the machine, the commit, and the command that repeats it.
"""
GROUP_HEAD = """\
Run each command in the root of a checkout. A load over 1 means that other work kept the machine
busy. `--save NAME` replaces the figures of `benchmarks/results/NAME.json`; `make figures` makes
this page and the [overview](../benchmarks.md).
"""
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9`[])")
LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


def main() -> None:
    for path, text in pages(load(path) for path in sorted(RESULTS.glob("*.json"))).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def pages(results: Iterable[Result]) -> dict[Path, str]:
    """The overview, and the page of each group that has results. Raises `ValueError` for a result
    without its words, or in a group that there is not."""
    found = list(results)
    for result in found:
        _check(result)
    grouped = [(group, [each for each in found if each.group == group]) for group in GROUPS]
    filled = [(group, members) for group, members in grouped if members]
    overview = "\n".join([HEAD, *(_table(group, members) for group, members in filled)])
    return {PAGE: overview} | {_path(group): _page(group, members) for group, members in filled}


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


def _path(group: str) -> Path:
    return PAGE.with_suffix("") / f"{anchor(group)}.md"


def _table(group: str, members: list[Result]) -> str:
    page = _path(group).relative_to(PAGE.parent)
    rows = [
        f"| [{each.title}]({page}#{anchor(each.title)}) | {_first_sentence(each.says)} |"
        for each in members
    ]
    head = f"## {group}\n\n| question | answer |\n|---|---|"
    return "\n".join([head, *rows, ""])


def _first_sentence(words: str) -> str:
    return LINK.sub(r"\1", SENTENCE_END.split(words)[0]).replace("|", r"\|")


def _page(group: str, members: list[Result]) -> str:
    return "\n".join([f"# Benchmarks: {group}\n{MADE}\n{GROUP_HEAD}", *map(_result, members)])


def _result(result: Result) -> str:
    where = f"{result.machine}; {result.date}; commit {result.commit}"
    tables = "\n\n".join(drawn(table) for table in result.tables)
    return (
        f"## {result.title}\n{result.says}\n\n{tables}\n\n"
        f"{result.compared} `{result.command}` ({where})\n"
    )


if __name__ == "__main__":
    main()
