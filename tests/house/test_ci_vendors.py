"""What the product shares knows no CI by name: another one is added as a folder."""

from __future__ import annotations

import re

from tests.house.sources import ROOT, name_of

VENDOR = re.compile(
    r"(?i:git_?hub|octokit|git_?lab|fetch-depth|buildkite|circle_?ci|bitbucket|azure|TF_BUILD|jenkins)"
    r"|\bCI_[A-Z]|\bGIT_DEPTH"
)
SHARED = ROOT / "plugin" / "tunegate"
HOSTS = SHARED / "ci"
EXCEPTIONS = {
    # What to install for a CI that is not.
    "plugin/tunegate/known_extras.py",
    # The address of the documentation.
    "plugin/tunegate/wording.py",
    # The workflow that a repository starts with.
    "plugin/tunegate/cli/handlers/init.py",
    "plugin/tunegate/cli/handlers/workflow.yml",
    # The address that every pointer of Git LFS begins with.
    "plugin/tunegate/models/finder.py",
    "plugin/tunegate/system/git/content.py",
    # The licence line of a library that a page has inside.
    "plugin/tunegate/report/vendor/uplot/uPlot.iife.min.js",
}


def test_no_vendor_is_named_outside_of_its_folder() -> None:
    naming = {
        name_of(path)
        for path in SHARED.rglob("*")
        if path.suffix in {".py", ".yml", ".html", ".css", ".js"}
        and not (HOSTS in path.parents and path.parent != HOSTS)
        and VENDOR.search(path.read_text())
    }
    assert naming == EXCEPTIONS
