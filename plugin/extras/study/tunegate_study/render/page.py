"""A study as one self-contained HTML file: no script, no network."""

from __future__ import annotations

from tunegate.report.html_page import page_environment
from tunegate_study.render.effects_plot import effects_plot
from tunegate_study.render.sections import study_headline, study_sections
from tunegate_study.studies import Study


def render(study: Study) -> str:
    """Returns the page; the same study always gives the same bytes."""
    environment = page_environment(longest_text=600, own="tunegate_study.render")
    template = environment.get_template("study.html.j2")
    return template.render(
        study=study,
        headline=study_headline(study),
        sections=study_sections(study),
        plot=effects_plot(study),
    )
