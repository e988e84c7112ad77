"""The history and its costs as readers use them: with a mouse, with keys, with a screen reader, on
a telephone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from tests.e2e.test_html_in_browser import CONTRASTS, READABLE
from tests.support.browser import browser, requests, show
from tests.support.history import REQUESTS, history

from tunegate_history import costs_page
from tunegate_history import history_page as page

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.set_script_timeout(300)
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("pages")
    texts = {
        "history": page.render(history(), "cache", 2),
        "costs": costs_page.render(history(), "cache", 2),
    }
    for name, text in texts.items():
        (written / f"{name}.html").write_text(text, encoding="utf-8")
    return written


@pytest.fixture
def opened(chrome: webdriver.Chrome, folder: Path) -> webdriver.Chrome:
    show(chrome, folder / "history.html", width=1280)
    return chrome


def text_of(chrome: webdriver.Chrome, name: str) -> str:
    return chrome.find_element(By.ID, name).text


def choose(chrome: webdriver.Chrome, name: str, text: str) -> None:
    Select(chrome.find_element(By.ID, name)).select_by_visible_text(text)


def view(chrome: webdriver.Chrome) -> tuple[float, float]:
    """Returns the two ends of the part of the horizontal axis that is in view."""
    found = chrome.execute_script("const v = chart.view(); return [v.min, v.max];")
    return found[0], found[1]


def test_the_latest_model_is_drawn_and_all_its_runs_are_listed(opened: webdriver.Chrome) -> None:
    assert text_of(opened, "counted") == "25 of 25 latencies in view, of 24 runs, the latest first."
    first = opened.find_element(By.CSS_SELECTOR, "#rows tr").text
    assert "models/squeezenet.onnx" in first
    assert "2026-06-20" in first
    assert opened.get_log("browser") == []  # type: ignore[no-untyped-call]  # selenium's


def test_filters_narrow_what_is_drawn(opened: webdriver.Chrome) -> None:
    choose(opened, "target", "gpu")
    assert text_of(opened, "counted").startswith("1 of 1 latency in view, of 1 run,")
    choose(opened, "device", "AMD EPYC 7B13")
    assert text_of(opened, "shown") == "No run fits these filters."
    assert opened.find_elements(By.CSS_SELECTOR, "#rows tr") == []


def test_the_axis_may_be_commits_and_the_range_logarithmic(opened: webdriver.Chrome) -> None:
    choose(opened, "axis", "commits, as written")
    assert view(opened)[1] < 100  # places in a row, no seconds
    for text, distribution, low in (("logarithmic", 3, 0.4), ("from zero", 1, 0)):
        choose(opened, "range", text)
        scale = opened.execute_script("const s = chart.plot.scales.y; return [s.distr, s.min];")
        assert scale[0] == distribution
        assert scale[1] == pytest.approx(low)


def test_buttons_zoom_and_move(opened: webdriver.Chrome) -> None:
    low, high = view(opened)
    opened.find_element(By.ID, "closer").click()
    closer = view(opened)
    assert closer[1] - closer[0] == pytest.approx((high - low) / 2)
    opened.find_element(By.ID, "later").click()
    assert view(opened)[0] > closer[0]
    assert not text_of(opened, "counted").startswith("25 of")
    opened.find_element(By.ID, "everything").click()
    assert view(opened) == pytest.approx((low, high))


def test_keys_go_from_run_to_run_and_say_what_is_there(opened: webdriver.Chrome) -> None:
    place = opened.find_element(By.ID, "chart")
    place.send_keys(Keys.END)
    assert "6.600 ms" in text_of(opened, "point")
    place.send_keys(Keys.ARROW_LEFT)
    assert "2026-06-19" in text_of(opened, "point")
    link = opened.find_element(By.CSS_SELECTOR, "#point a")
    assert link.get_attribute("href") == "https://ci.example/runs/22"
    place.send_keys(Keys.HOME)
    assert "2026-05-28" in text_of(opened, "point")
    place.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert "0.4000 ms" in text_of(opened, "point")
    before = view(opened)
    place.send_keys("+")
    assert view(opened)[0] > before[0]
    place.send_keys("0")
    assert view(opened) == pytest.approx(before)


def test_releases_versions_and_waivers_are_marked(opened: webdriver.Chrome) -> None:
    lines = opened.execute_script("return chart.lines.map(each => [each.kind, each.name]);")
    assert lines == [
        ["release", "v1.2.0"],
        ["bump", "apache-tvm 0.25.0"],
        ["release", "v1.3.0"],
    ]
    assert opened.execute_script(
        "return chart.series[0].rows.map(row => textOf('status', row)).indexOf('waived');"
    ) == len(set(range(18)) - set(REQUESTS))


def test_heads_of_pull_requests_are_points_beside_the_line(opened: webdriver.Chrome) -> None:
    """Who comes after one of them need not have it."""
    drawn = opened.execute_script(
        "return chart.series.map(each => [each.isAside, each.rows.length, each.tint]);"
    )
    assert drawn[:2] == [[False, 22, 0], [True, len(REQUESTS), 0]]
    assert (
        "models/squeezenet.onnx on cpu, AMD EPYC 7B13, beside the default branch (points)"
        in text_of(opened, "legend")
    )
    change = opened.find_element(By.CSS_SELECTOR, '#rows [data-label="Change"]').text
    assert change == "+0.1%\n\N{MINUS SIGN}0.4 to +0.5%"


def test_a_hostile_name_is_a_choice_and_nothing_else(opened: webdriver.Chrome) -> None:
    choose(opened, "model", "models/<script>alert(1)</script>\\u202e.onnx")
    assert "<script>alert(1)</script>" in opened.find_element(By.CSS_SELECTOR, "#rows tr").text
    assert opened.find_elements(By.TAG_NAME, "img") == []


@pytest.mark.parametrize("name", ["history", "costs"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_reaches_over_the_edge_and_no_network_is_asked(
    chrome: webdriver.Chrome, folder: Path, name: str, width: int
) -> None:
    requests(chrome)
    path = folder / f"{name}.html"
    show(chrome, path, width=width)
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= width
    assert set(requests(chrome)) == {path.as_uri()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["history", "costs"])
def test_axe_finds_nothing(
    chrome: webdriver.Chrome, folder: Path, node_modules: Path, name: str, scheme: str
) -> None:
    show(chrome, folder / f"{name}.html", width=1280, scheme=scheme)
    axe = node_modules / "node_modules" / "axe-core" / "axe.min.js"
    chrome.execute_cdp_cmd("Runtime.evaluate", {"expression": axe.read_text(encoding="utf-8")})
    found = chrome.execute_async_script(
        "axe.run().then(each => arguments[arguments.length - 1](each.violations.map("
        "v => [v.id, v.nodes.map(n => n.html.slice(0, 120))])));"
    )
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(chrome: webdriver.Chrome, folder: Path, scheme: str) -> None:
    show(chrome, folder / "history.html", width=1440, scheme=scheme)
    contrasts = chrome.execute_script(CONTRASTS)
    assert len(contrasts) > 100
    assert [text for contrast, text in contrasts if contrast < READABLE] == []
