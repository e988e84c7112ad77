"""Files are where a reader looks for them, and say what they are for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house import sources

WEAK_NAMES = {"util", "utils", "helper", "helpers", "common", "base", "manager", "misc"}
WEAK_WORD = re.compile(r"(^|_)(utils?|helpers?|common|manager|misc)(_|$)")


def test_a_file_is_named_after_what_it_is_about() -> None:
    weak = [path for path in sources.OURS if path.stem in WEAK_NAMES or WEAK_WORD.search(path.stem)]
    assert not [sources.name_of(path) for path in weak]


def test_a_module_says_what_it_is_for() -> None:
    assert not [sources.name_of(path) for path in sources.OURS if not says_what_it_is_for(path)]


def says_what_it_is_for(path: Path) -> bool:
    tree = sources.tree_of(path)
    if path.name.startswith("test_") or (path.name == "__init__.py" and not tree.body):
        return True  # the names of tests are sentences
    docstring = ast.get_docstring(tree) or ""
    first_paragraph = docstring.split("\n\n", maxsplit=1)[0]
    return 0 < len(first_paragraph.splitlines()) <= 3


def test_a_docstring_begins_with_what_is_returned_or_done() -> None:
    asks = re.compile("(What|Whether|How|Which|Why|When|Tells) ")
    assert not [
        f"{sources.name_of(path)}: {text}"
        for path in sources.OURS
        for text in strings_alone(sources.tree_of(path))
        if asks.match(text)
    ]


def strings_alone(tree: ast.Module) -> Iterator[str]:
    """Yields docstrings, those of variables among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def test_a_program_starts_at_the_end_of_its_file() -> None:
    """Names below the start do not exist yet when the program runs."""
    assert not [sources.name_of(path) for path in sources.OURS if not starts_at_the_end(path)]


def starts_at_the_end(path: Path) -> bool:
    *others, _last = sources.tree_of(path).body or [ast.Pass()]
    starts = (ast.unparse(each.test) for each in others if isinstance(each, ast.If))
    return "__name__ == '__main__'" not in starts


def test_a_missing_package_skips_no_test_that_does_without_it() -> None:
    assert not [sources.name_of(path) for path in sources.OURS if skips_in_its_middle(path)]


def skips_in_its_middle(path: Path) -> bool:
    """Returns True where a skip of the whole file stands below its first test."""
    body = sources.tree_of(path).body
    first = next((n for n, each in enumerate(body) if isinstance(each, ast.FunctionDef)), len(body))
    rest = (ast.unparse(each) for each in body[first:] if isinstance(each, ast.Expr | ast.Assign))
    return any("pytest.importorskip(" in each or "allow_module_level" in each for each in rest)


# Imports stand at the top of a file, but for what is heavy or may be missing.

HEAVY_DOORS = (
    "tvm",
    "boto3",
    "botocore",
    "urllib3",
    "mlflow",
    "sigstore",
    "huggingface_hub",
    "ml_dtypes",
    "pynvml",
    "ray",
    "cuda",
    "cupti",
    "scipy",
    "xgboost",
    "tunegate.runtimes",
    "tunegate.models.reference",
    "tunegate.models.preparation",
    "tunegate.system.onnx_scan",
    "onnx",
    "tunegate.compiler",
    "tunegate_whole_model",
    "tunegate.cli.handlers",
    "tunegate.ci.registry",
    "tunegate.ci.job",
    "tunegate.report.html",
    # What few processes need of the standard library.
    "configparser",
    "importlib.metadata",
    "sysconfig",
    "tomllib",
    # Standard library, ours before it can be trusted to be there.
    "fcntl",
    "signal",
    "tunegate.cli",
    "tunegate.isolation",
    "tunegate_action.entry",
    "tunegate_action.main",
    "tunegate_environment",
)


def test_imports_inside_functions_are_heavy_doors_only() -> None:
    hidden = {
        f"{sources.name_of(path)} {module}"
        for path in sources.PRODUCT
        for function in sources.functions(path)
        for module in imported_modules(function)
        if not module.startswith(HEAVY_DOORS)
    }
    assert not hidden


def imported_modules(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
