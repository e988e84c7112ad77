"""Names of files in comments, docstrings, pages and settings exist."""

import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from tests.house.sources import OURS, ROOT, SOURCE_ROOTS, name_of

PACKAGES = ("plugin/tunegate", "cache/tunegate_cache", "action/tunegate_action")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")]
PAGES += [ROOT / "tests" / "adversary" / "README.md"]
SETTINGS = [ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / "action.yml", ROOT / ".ci" / "run"]
ELSEWHERE = {
    # What users have, or get from us.
    "tunegate.lock",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pixi.lock",
    "dvc.lock",
    "train/dvc.lock",
    "pylock.toml",
    "report.md",
    "tools/wer.py",
    "score.py",
    # What the page on security says an attacker would write.
    "sitecustomize.py",
    "onnxruntime.py",
    "msgspec.py",
    # What other projects have.
    "Privacy.md",
    "tools/compare.py",
    "nvbench_compare.py",
}
FILE_NAME = re.compile(r"(?<![\w/.$<>{}:*-])[\w./-]*\w\.(?:py|md|mjs|lock|toml)\b(?![\w(*/])")


def test_each_file_that_is_named_exists() -> None:
    stale = [
        f"{name_of(source)}: {named}"
        for source, prose in texts()
        for named in FILE_NAME.findall(prose)
        if named not in ELSEWHERE and not is_a_file(named, source)
    ]
    assert not stale


def test_each_exception_of_a_linter_has_a_file() -> None:
    lint = project()["tool"]["ruff"]["lint"]
    patterns = [each for glob in lint["per-file-ignores"] for each in alternatives(glob)]
    assert not [pattern for pattern in patterns if not any(ROOT.glob(pattern))]


def test_each_module_of_an_import_contract_exists() -> None:
    """Import-linter takes a layer in parentheses for optional: it says nothing when it is gone."""
    gone = [
        module
        for contract in project()["tool"]["importlinter"]["contracts"]
        for container in contract.get("containers", [])
        for layer in contract["layers"]
        for name in re.split(r" [|:] ", layer)
        if not is_a_module(module := f"{container}.{name.strip('()')}")
    ]
    assert not gone


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def alternatives(glob: str) -> list[str]:
    """`{a,b}/c` as `a/c` and `b/c`; pathlib knows no braces."""
    head, brace, rest = glob.partition("{")
    if not brace:
        return [glob]
    inside, _, tail = rest.partition("}")
    return [head + each + tail for each in inside.split(",")]


def is_a_module(name: str) -> bool:
    path = name.replace(".", "/")
    return any(
        (ROOT / part / path).is_dir() or (ROOT / part / f"{path}.py").is_file()
        for part in SOURCE_ROOTS
    )


def texts() -> Iterator[tuple[Path, str]]:
    """Yields each source with the text that it addresses to readers."""
    for path in OURS:
        if FILE_NAME.search(text := path.read_text()):
            yield path, "\n".join(comments_and_docstrings(text))
    for path in [*PAGES, *SETTINGS]:
        yield path, path.read_text()


def comments_and_docstrings(source: str) -> Iterator[str]:
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        starts = previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.NL)
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and starts):
            yield token.string
        previous = token.type


def is_a_file(name: str, source: Path) -> bool:
    named = PurePosixPath(name.removeprefix("/"))
    homes = [source.parent, *(ROOT / package for package in ("", "tests", *PACKAGES))]
    if any((home / named).exists() for home in homes):
        return True
    return str(named) in known_files()


@cache
def known_files() -> set[str]:
    """Each file of the repository, by its path and by every end of it."""
    listed = ["git", "-C", str(ROOT), "ls-files"]
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [path.split("/") for path in found]
    return {"/".join(each[at:]) for each in parts for at in range(len(each))}
