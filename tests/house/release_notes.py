"""The notes of a release, cut out of CHANGELOG.md.

`python -m tests.house.release_notes v1.2.3` prints them, or says why the tag is no release.
"""

import re
import sys
import tomllib

from tests.house.sources import ROOT

MAX_CHARACTERS = 120_000
"""A release on GitHub takes 125,000; the images are listed below the notes."""


class NotReleasableError(Exception):
    """The tag, the version and the changelog do not agree."""


def main(tag: str) -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = f"{project['urls']['Source']}/blob/{tag}"
    try:
        notes = release_notes((ROOT / "CHANGELOG.md").read_text(), tag, project["version"], page)
    except NotReleasableError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(notes)
    return 0


def release_notes(changelog: str, tag: str, version: str, page: str) -> str:
    """The section of the version, as GitHub shows a release: one line for each
    paragraph or item, and links to the files of the tag. Raises NotReleasableError."""
    if tag != f"v{version}":
        message = f"The tag is {tag}, but pyproject.toml has version {version}."
        raise NotReleasableError(message)
    sections = sections_of(changelog)
    if sections.get("Unreleased", "").strip():
        message = (
            f"CHANGELOG.md: move what is under Unreleased to ## {version}, then tag that commit."
        )
        raise NotReleasableError(message)
    section = sections.get(version, "").strip()
    if not section:
        message = f"CHANGELOG.md: there is nothing under ## {version}."
        raise NotReleasableError(message)
    return shortened(f"{with_absolute_links(unwrapped(section), page)}\n", page)


def sections_of(changelog: str) -> dict[str, str]:
    """The text below each heading of the second level, by its first word: `## 1.2.3 - 2026-01-31`
    and `## [1.2.3]` are both of 1.2.3."""
    _, *parts = re.split(r"^## +", changelog, flags=re.MULTILINE)
    found = {}
    for part in parts:
        heading, _, text = part.partition("\n")
        found[heading.split()[0].strip("[]")] = text
    return found


def unwrapped(section: str) -> str:
    """Joins the lines of a paragraph or an item: in a release each new line is a line break."""
    lines: list[str] = []
    for line in section.splitlines():
        goes_on = line.strip() and lines and lines[-1].strip() and not begins(line, lines[-1])
        if goes_on:
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def begins(line: str, before: str) -> bool:
    """Returns True where the line begins a block of its own."""
    return bool(re.match(r"\s*([-*#>|]|\d+\.|```)", line)) or before.startswith("#")


def with_absolute_links(text: str, page: str) -> str:
    """Relative links lead nowhere from the page of a release."""
    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", rf"]({page}/\1)", text)


def shortened(notes: str, page: str) -> str:
    if len(notes) <= MAX_CHARACTERS:
        return notes
    whole = notes[:MAX_CHARACTERS].rpartition("\n")[0]
    return f"{whole}\n\nThe rest is in [CHANGELOG.md]({page}/CHANGELOG.md).\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
