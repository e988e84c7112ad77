"""The report on a fork's own run, as Markdown: its numbers, and no sentence that it could write."""

from __future__ import annotations

from tunegate.artifacts.verdicts import Verdict
from tunegate.fitted_markdown import Section, fitted
from tunegate.plurals import plural
from tunegate.render.blocks import markdown_table
from tunegate.render.escape import code
from tunegate.render.headline import counts, worst_first
from tunegate.render.tables.report_tables import models_table

MAX_FORK_CHECKS = 50
_LIMIT = 60_000


def render(verdict: Verdict, *, source: str, tip: str) -> str:
    """The table of models. Names of models and targets are the fork's words, as code; reasons,
    notes and advice are left out, and counted is what the table has."""
    shown = worst_first(verdict)[:MAX_FORK_CHECKS]
    rest = len(verdict.findings) - len(shown)
    table = markdown_table(models_table(shown).without("Energy")) if shown else ""
    more = f"\n\n… and {plural(rest, 'more check')}." if rest > 0 else ""
    sections = (
        Section(0, f"### Unverified, from a run of the fork: {counts(verdict)}"),
        Section(1, _warning(source, tip)),
        Section(2, table + more),
    )
    return fitted([section for section in sections if section.text], _LIMIT)


def _warning(source: str, tip: str) -> str:
    return (
        f"> ⚠️ These numbers come from a run of {code(source)} for commit {code(tip[:12])}. Whoever "
        "opened this pull request can have changed what was run and what it wrote. They decide "
        "nothing: a check that counts has to run with this repository's own rules."
    )
