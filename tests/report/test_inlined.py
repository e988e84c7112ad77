"""The scripts and styles of the page: allowed by hash, and uPlot's are npm's, byte for byte."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import tunegate.report
from tunegate.report.html_page import history_scripts, history_style

FOLDER = Path(tunegate.report.__file__).parent / "vendor" / "uplot"
DIGESTS = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""The SHA-256 of files of uplot-1.6.32.tgz, whose integrity in the registry is
sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==."""


def test_the_hash_is_that_of_the_very_text() -> None:
    for each in (*history_scripts(), history_style()):
        digest = base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode()
        assert each.source == f"'sha256-{digest}'"


def test_no_script_ends_its_element() -> None:
    for each in history_scripts():
        assert "</script" not in each.text.lower()
        assert "<!--" not in each.text
    assert "</style" not in history_style().text.lower()


def test_the_files_are_those_of_the_package() -> None:
    found = {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in DIGESTS}
    assert found == DIGESTS


def test_it_needs_no_permission_that_a_page_withholds() -> None:
    script = (FOLDER / "uPlot.iife.min.js").read_text(encoding="utf-8")
    assert "1.6.32" in script[:100]
    for word in ("eval(", "new Function", "innerHTML", "fetch(", "XMLHttpRequest", "</script"):
        assert word not in script
