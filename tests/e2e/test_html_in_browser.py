"""The page as a reader's browser shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.support.browser import browser, requests, show
from tests.support.reports import make_report
from tunegate.report.html import render

pytestmark = pytest.mark.e2e

SHOWN = ("slowed", "hostile", "many")
READABLE = 4.5
# For every text on the page its contrast with what is painted behind it
# (WCAG 2, relative luminance).
CONTRASTS = """
const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
const luminance = rgb => {
  const [r, g, b] = rgb.slice(0, 3).map(v => v / 255).map(
    v => v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
document.querySelectorAll('details').forEach(each => { each.open = true; });
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || element.closest('title, style')) continue;
  const style = getComputedStyle(element);
  const ink = channels(element.closest('svg') ? style.fill : style.color);
  const pair = [luminance(ink), luminance(behind(element))].sort((a, b) => b - a);
  found.push([(pair[0] + 0.05) / (pair[1] + 0.05), walker.currentNode.textContent.trim()]);
}
return found;
"""
# What reaches over the right edge without a box of its own to scroll in.
OVERFLOWING = """
document.querySelectorAll('details').forEach(each => { each.open = true; });
const wide = [...document.querySelectorAll('body *')].filter(each =>
  !each.closest('svg, title, thead') && (
  each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0
  || each.getBoundingClientRect().right > innerWidth + 0.5 && !each.closest('.scroll')));
const shown = wide.map(each => each.outerHTML.slice(0, 120));
return [document.documentElement.scrollWidth - innerWidth, shown];
"""


# What axe-core finds, with every fold open: the rule, and the first element that breaks it.
VIOLATIONS = """
const done = arguments[0];
document.querySelectorAll('details').forEach(each => { each.open = true; });
axe.run().then(found => done(
  found.violations.map(each => [each.id, each.nodes[0].html.slice(0, 160)])));
"""


@pytest.fixture(scope="module")
def axe(node_modules: Path) -> str:
    return (node_modules / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {kind: folder / f"{kind}.html" for kind in SHOWN}
    for kind, path in written.items():
        path.write_text(render(make_report(kind)), encoding="utf-8")
    return written


@pytest.mark.parametrize("width", [375, 1440])
@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_reaches_over_the_edge(
    chrome: webdriver.Chrome, pages: dict[str, Path], kind: str, width: int
) -> None:
    show(chrome, pages[kind], width=width)
    assert chrome.execute_script("return innerWidth") == width
    beyond, elements = chrome.execute_script(OVERFLOWING)
    assert elements == []
    assert beyond <= 0


@pytest.mark.parametrize("width", [375, 1440])
def test_no_table_scrolls(chrome: webdriver.Chrome, pages: dict[str, Path], width: int) -> None:
    show(chrome, pages["slowed"], width=width)
    script = (
        "return [...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert max(chrome.execute_script(script)) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["slowed", "hostile"])
def test_every_text_can_be_read(
    chrome: webdriver.Chrome, pages: dict[str, Path], kind: str, scheme: str
) -> None:
    show(chrome, pages[kind], width=1440, scheme=scheme)
    contrasts = chrome.execute_script(CONTRASTS)
    assert len(contrasts) > 100
    assert [text for contrast, text in contrasts if contrast < READABLE] == []


def test_the_dark_page_is_dark(chrome: webdriver.Chrome, pages: dict[str, Path]) -> None:
    backgrounds = []
    for scheme in ("light", "dark"):
        show(chrome, pages["slowed"], width=1440, scheme=scheme)
        script = "return getComputedStyle(document.body).backgroundColor"
        backgrounds.append(chrome.execute_script(script))
    assert backgrounds == ["rgb(246, 247, 249)", "rgb(15, 19, 24)"]


@pytest.mark.parametrize("width", [375, 1440])
def test_the_plots_are_large_enough_to_read(
    chrome: webdriver.Chrome, pages: dict[str, Path], width: int
) -> None:
    show(chrome, pages["slowed"], width=width)
    script = (
        "return [...document.querySelectorAll('svg text')]"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert min(chrome.execute_script(script)) >= 9


def violations(chrome: webdriver.Chrome, axe: str) -> list[tuple[str, str]]:
    chrome.execute_script(axe)
    return [(rule, element) for rule, element in chrome.execute_async_script(VIOLATIONS)]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
@pytest.mark.parametrize("kind", ["slowed", "hostile"])
def test_keyboards_and_screen_readers_can_use_the_report(
    chrome: webdriver.Chrome, pages: dict[str, Path], axe: str, kind: str, width: int, scheme: str
) -> None:
    show(chrome, pages[kind], width=width, scheme=scheme)
    assert violations(chrome, axe) == []


def test_an_unusable_page_is_found(chrome: webdriver.Chrome, tmp_path: Path, axe: str) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><html lang=en><title>x</title><main><h1>x</h1><img src=x>")
    show(chrome, page, width=400)
    assert [rule for rule, _ in violations(chrome, axe)] == ["image-alt"]


def test_paper_has_no_dark_page_and_no_closed_fold(
    chrome: webdriver.Chrome, pages: dict[str, Path]
) -> None:
    show(chrome, pages["slowed"], width=760, scheme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    colour = chrome.execute_script("return getComputedStyle(document.querySelector('h1')).color")
    heights = chrome.execute_script(
        "return [...document.querySelectorAll('details')].map(each => each.offsetHeight)"
    )
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert colour == "rgb(27, 32, 39)"
    assert min(heights) > 60


@pytest.mark.parametrize("kind", SHOWN)
def test_the_page_asks_the_network_for_nothing(
    chrome: webdriver.Chrome, pages: dict[str, Path], kind: str
) -> None:
    requests(chrome)
    show(chrome, pages[kind], width=1440)
    assert set(requests(chrome)) == {pages[kind].as_uri()}
