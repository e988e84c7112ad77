import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.house.release_notes import MAX_CHARACTERS, NotReleasableError, main, release_notes
from tests.house.sources import ROOT

CHANGELOG = """\
# Changelog

All notable changes.

## Unreleased

## 1.2.3 - 2026-01-31

### Added
- One thing that takes
  two lines ([models](docs/models.md#shapes)).
- Another ([elsewhere](https://example.com/)).

Words of
a paragraph.

## [1.2.2]
- Older.
"""
PAGE = "https://example.com/owner/name/blob/v1.2.3"


def test_the_notes_are_the_versions_section_without_line_breaks_inside_an_item() -> None:
    assert release_notes(CHANGELOG, "v1.2.3", "1.2.3", PAGE).splitlines() == [
        "### Added",
        f"- One thing that takes two lines ([models]({PAGE}/docs/models.md#shapes)).",
        "- Another ([elsewhere](https://example.com/)).",
        "",
        "Words of a paragraph.",
    ]


def test_a_heading_may_have_brackets() -> None:
    assert release_notes(CHANGELOG, "v1.2.2", "1.2.2", PAGE) == "- Older.\n"


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "why"),
    [
        ("v1.2.4", "1.2.3", CHANGELOG, "tag is v1.2.4, but pyproject.toml has version 1.2.3"),
        ("1.2.3", "1.2.3", CHANGELOG, "The tag is 1.2.3"),
        ("v1.2.4", "1.2.4", CHANGELOG, "nothing under ## 1.2.4"),
        (
            "v1.2.3",
            "1.2.3",
            CHANGELOG.replace("## Unreleased\n", "## Unreleased\n- Late.\n"),
            "move what is under Unreleased",
        ),
    ],
)
def test_an_unfit_tag_is_no_release(tag: str, version: str, changelog: str, why: str) -> None:
    with pytest.raises(NotReleasableError, match=why):
        release_notes(changelog, tag, version, PAGE)


def test_notes_that_are_too_long_end_with_a_link() -> None:
    many = "- An item.\n" * MAX_CHARACTERS
    notes = release_notes(f"## Unreleased\n## 1.0.0\n{many}", "v1.0.0", "1.0.0", PAGE)
    assert len(notes) < MAX_CHARACTERS + 200
    assert notes.endswith(f"- An item.\n\nThe rest is in [CHANGELOG.md]({PAGE}/CHANGELOG.md).\n")


def test_the_project_has_the_notes_of_its_next_release(capsys: pytest.CaptureFixture[str]) -> None:
    """They stand under Unreleased until then: the tag of today's version is refused with why."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert main(f"v{version}") in {0, 2}
    shown = capsys.readouterr()
    assert shown.out.startswith("### ") or "CHANGELOG.md: move" in shown.err


# The subject of a commit fits into the lists that people read.

MAX_SUBJECT_COLUMNS = 72
MERGED_BY_HOST = re.compile(r"Merge [0-9a-f]{40} into [0-9a-f]{40}$")
MAINS = ("origin/main", "main")


def test_the_subjects_of_new_commits_fit_into_a_list() -> None:
    assert not [subject for subject in new_subjects(ROOT) if len(subject) > MAX_SUBJECT_COLUMNS]


def new_subjects(checkout: Path) -> list[str]:
    """Returns what was committed since main's last commit, or HEAD alone where that is main."""
    mains = [main for main in MAINS if git(checkout, "rev-parse", "--verify", "-q", main)]
    since = [f"^{main}" for main in mains[:1]] or ["-1"]
    subjects = git(checkout, "log", "--no-merges", "--format=%s", "HEAD", *since)
    subjects = subjects or git(checkout, "log", "-1", "--format=%s")
    return [subject for subject in subjects if not MERGED_BY_HOST.match(subject)]


def git(checkout: Path, *arguments: str) -> list[str]:
    """Returns the lines that git prints: none where there is no repository, or no such commit."""
    command = ["git", "-C", str(checkout), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []
