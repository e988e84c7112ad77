from __future__ import annotations

import re

from matplotlib.figure import Figure

from tests.support.reports import make_report
from tunegate.report import plots
from tunegate.report.svg import svg


def drawn() -> str:
    finding = make_report("slowed").verdict.findings[0]
    return plots.waterfall(finding, "it")


def test_every_colour_is_the_page_s() -> None:
    assert re.findall(r"#[0-9a-fA-F]{6}\b", drawn()) == []
    assert "var(--slower)" in drawn()


def test_every_text_names_its_colour() -> None:
    for style in re.findall(r"<text[^>]*>", drawn()):
        assert "var(--" in style, style


def test_every_id_and_every_reference_carries_the_name() -> None:
    text = drawn()
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    references = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text))
    assert all(each.startswith("it-") for each in ids)
    assert {first or second for first, second in references} <= ids


def test_a_description_is_read_aloud_and_escaped() -> None:
    text = svg(Figure(figsize=(1, 1)), name="x", description='<b> & "c"')
    assert "<title>&lt;b&gt; &amp; &quot;c&quot;</title>" in text


def test_a_drawing_tells_no_date_and_no_maker() -> None:
    assert "<metadata>" not in drawn()
    assert "Matplotlib" not in drawn()
