"""Golden files: what a renderer wrote when it was last reviewed."""

import difflib
from pathlib import Path

import msgspec
import pytest

FOLDER = Path(__file__).parent.parent / "golden"


class Golden(msgspec.Struct, frozen=True):
    """Compares texts with the files of a folder, or rewrites them."""

    update: bool

    def check(self, name: str, text: str, folder: Path = FOLDER) -> None:
        """Fail with a diff, leaving `<name>.got` beside the file, when the text differs."""
        path = folder / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        wanted = path.read_text(encoding="utf-8") if path.exists() else ""
        got = path.with_name(path.name + ".got")
        if text == wanted:
            got.unlink(missing_ok=True)
            return
        got.write_text(text, encoding="utf-8")
        lines = difflib.unified_diff(
            wanted.splitlines(), text.splitlines(), name, f"{name}.got", lineterm="", n=1
        )
        pytest.fail(
            "\n".join([*lines, "Read it; if it is right: pytest --update-golden"]), pytrace=False
        )
