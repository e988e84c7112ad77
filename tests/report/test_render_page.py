from __future__ import annotations

import jinja2
import pytest

from tunegate.report.html_page import page_environment


def shown(template: str, *, longest: int = 100, **values: object) -> str:
    return page_environment(longest_text=longest).from_string(template).render(**values)


def test_a_text_stays_a_text() -> None:
    page = shown("<p>{{ name }}</p><i title='{{ name }}'>", name="<img src=x onerror='a()'>")
    assert "<img" not in page
    assert "onerror='" not in page


def test_what_cannot_be_seen_is_shown() -> None:
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown(
        "{{ name }}", name="a\N{RIGHT-TO-LEFT OVERRIDE}b"
    )


def test_a_long_text_is_cut_in_the_middle() -> None:
    page = shown("{{ name }}", longest=20, name="begin" + "x" * 100 + "end")
    assert len(page) <= 20
    assert page.startswith("begin")
    assert page.endswith("end")


def test_a_name_that_the_template_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        shown("{{ forgotten }}")


def test_numbers_are_written_as_in_every_report() -> None:
    assert shown("{{ 8.5 | ms }}") == "8.500 ms"


def test_templates_of_the_product_are_found() -> None:
    environment = page_environment(longest_text=100)
    assert environment.loader is not None
    assert environment.loader.list_templates()
    assert {"table", "WORDS"} <= set(environment.globals)
