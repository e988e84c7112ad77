"""A study as one HTML file that needs nothing else: no script, no network."""

from __future__ import annotations

from tunegate.artifacts.studies import Study
from tunegate.render.page import page_environment
from tunegate.render.study.effects_plot import effects_plot
from tunegate.render.study.sections import study_headline, study_sections


def render(study: Study) -> str:
    """The page; the same study always gives the same bytes."""
    template = page_environment(longest_text=600).get_template("study.html.j2")
    return template.render(
        study=study,
        headline=study_headline(study),
        sections=study_sections(study),
        plot=effects_plot(study),
    )
