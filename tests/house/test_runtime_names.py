"""A runtime is known by name in its own folder: whoever adds one edits nothing else."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import PRODUCT, ROOT, name_of

NAMES = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "tunegate.runtimes"
    ]
)
OTHER_MEANINGS = {
    # What extends a runtime that is not an extra.
    "plugin/tunegate/known_extras.py": {"tvm"},
    # The package `tvm` has one door, where kernels are made; a record says by which version.
    "plugin/tunegate/compiler": {"tvm"},
    "cache/tunegate_cache/format": {"tvm"},
    # ONNX Runtime is also the reference, which decides what numbers are right.
    "plugin/tunegate/models/reference": {"onnxruntime"},
    "plugin/tunegate/artifacts/candidates.py": {"onnxruntime"},
    # The name of a package with operators.
    "plugin/tunegate/models/operator_libraries.py": {"onnxruntime"},
    # Its values hold the types that NumPy lacks.
    "plugin/tunegate/models/narrow_types.py": {"onnxruntime"},
    # The same package, with another of its providers; and how it tells the times of operators.
    "plugin/tunegate/runtimes/onnxruntime_cuda": {"onnxruntime"},
    # Its databases are TVM's own.
    "plugin/extras/exchange": {"tvm"},
    # It extends one runtime.
    "plugin/extras/whole_model": {"tvm"},
    # The meaning of a key names the runtimes that it may have.
    "plugin/tunegate/config.py": {*NAMES},
    # Packages in a lock file, of runtimes that are perhaps not installed here.
    "plugin/extras/upgrades/tunegate_upgrades/upgraded_models.py": {*NAMES},
    # A compiler that an image installs, which is perhaps not the one here.
    "plugin/extras/upgrades/tunegate_upgrades/lock_files/dockerfile.py": {"tvm"},
    # An example of a command line.
    "plugin/tunegate/cli/commands/gating.py": {"tvm", "onnxruntime"},
}
"""Places where the word is no runtime that one may choose."""


def test_a_runtime_is_named_in_its_own_folder_only() -> None:
    called = re.compile(rf"(?<![a-z])(?:{'|'.join(NAMES)})(?![a-z])")
    naming = {
        f"{name_of(path)}: {name} in {text!r}"
        for path in PRODUCT
        if called.search(source := path.read_text())
        for text in words(ast.parse(source))
        for name in called.findall(text)
        if not is_allowed(path, name)
    }
    assert not naming


def is_allowed(path: Path, name: str) -> bool:
    inside = name_of(path)
    if inside.startswith(f"plugin/tunegate/runtimes/{name}/"):
        return True
    return any(inside.startswith(place) and name in kept for place, kept in OTHER_MEANINGS.items())


def words(tree: ast.AST) -> Iterator[str]:
    """Names, imports and texts of a module; what it says to its readers only is left out."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if id(node) not in told:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str() as name) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str() as name):
                yield name
            case _:
                pass


# What the product shares knows no CI by name: another one is added as a folder.

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
