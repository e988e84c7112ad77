"""Parts of the pages in Markdown."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"```.*?```", re.DOTALL)


def pages() -> list[Path]:
    """Returns every page that a user or a contributor reads."""
    return sorted(
        [
            *ROOT.glob("*.md"),
            *(ROOT / "docs").rglob("*.md"),
            *ROOT.glob("plugin/extras/*/README.md"),
            *(ROOT / "research").rglob("*.md"),
            ROOT / "tests" / "adversary" / "README.md",
        ]
    )


def section(page: Path, title: str) -> str:
    """Returns the text below the heading `## title`, up to the next heading of its level."""
    _, _, rest = page.read_text().partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def anchors(page: Path) -> set[str]:
    """Returns the anchors that GitHub gives the headings of a page."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found[anchor] = found.get(anchor, 0) + 1
    repeated = {f"{anchor}-{n}" for anchor, times in found.items() for n in range(1, times)}
    return set(found) | repeated


# Files of pipelines, checked by the schema that their CI publishes.


def require_valid(schema: str, files: Iterable[Path], *options: str) -> None:
    """`schema` is a name that check-jsonschema has built in."""
    check = Path(sys.executable).parent / "check-jsonschema"
    command = [str(check), "--builtin-schema", schema, *options, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
