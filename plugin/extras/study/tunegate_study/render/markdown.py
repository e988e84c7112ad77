"""A study as Markdown."""

from __future__ import annotations

from tunegate.report.escape import code, prose
from tunegate.report.markdown import markdown_table
from tunegate.wording import plural
from tunegate_study.render.sections import study_headline, study_sections
from tunegate_study.studies import Study


def render(study: Study) -> str:
    """Returns the text; the same study always gives the same bytes."""
    parts = [f"# Study of {code(study.file)}", prose(study_headline(study)) + "."]
    if study.unfinished:
        parts.append(f"**Not finished: {plural(study.unfinished, 'cell')}.**")
    for each in study_sections(study):
        parts += [f"## {each.title}", prose(each.text), markdown_table(each.table)]
    facts = [f"{prose(name)}: {prose(value)}" for name, value in study.environment.items()]
    parts += ["## Machine", "; ".join(facts) + "."] if facts else []
    return "\n\n".join(parts) + "\n"
