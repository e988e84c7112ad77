"""Imports stand at the top of a file, but for what is heavy or may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import PRODUCT, functions, name_of

HEAVY_DOORS = (
    "tvm",
    "boto3",
    "botocore",
    "urllib3",
    "matplotlib",
    "mlflow",
    "huggingface_hub",
    "pynvml",
    "ray",
    "cuda",
    "cupti",
    "scipy",
    "xgboost",
    "tunegate.runtimes",
    "tunegate.models.reference",
    "tunegate.models.preparation",
    "onnx",
    "tunegate.compiler",
    "tunegate_hybrid",
    "tunegate_whole_model",
    "tunegate.cli.handlers",
    "tunegate.ci.registry",
    "tunegate.ci.job",
    "tunegate.report.html",
    # What few processes need of the standard library.
    "configparser",
    "sysconfig",
    "tomllib",
    # Standard library, ours before it can be trusted to be there.
    "fcntl",
    "tunegate.cli",
    "tunegate.isolation",
    "tunegate_action.entry",
    "tunegate_action.main",
    "tunegate_environment",
)


def test_imports_inside_functions_are_heavy_doors_only() -> None:
    hidden = {
        f"{name_of(path)} {module}"
        for path in PRODUCT
        for function in functions(path)
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
