"""Every module with behaviour has its test, where a reader looks for it first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import PRODUCT, ROOT, Function, name_of, tree_of

PACKAGES = {
    "action": ROOT / "action" / "tunegate_action",
    "plugin": ROOT / "plugin" / "tunegate",
    "cache": ROOT / "cache" / "tunegate_cache",
}
STARTED_BY_OTHERS = {
    "tunegate_action/entry.py": "tests/action/test_bootstrap.py starts it",
    "tunegate_action/main.py": "tests/e2e/test_action.py starts it",
    "edges/processes/run_child.py": "every child begins with it: test_child.py",
    "edges/metaschedule/compile.py": "a child: runtimes/tvm/test_compiler.py starts it",
    "edges/metaschedule/parts/build_parts.py": "in a child: runtimes/hybrid/test_builder.py",
    "edges/metaschedule/parts/assembly.py": "in a child: runtimes/hybrid/test_builder.py",
    "edges/metaschedule/parts/part_opener.py": "test_open_parts.py opens all parts by it",
    "edges/metaschedule/parts/whole.py": "in a child: runtimes/hybrid/test_builder.py",
    "edges/metaschedule/parts/winners.py": "in a child: runtimes/hybrid/test_builder.py",
    "edges/metaschedule/parts/profile.py": "runtimes/hybrid/test_builder.py times operators",
    "edges/metaschedule/searcher.py": "a child: engine/test_searchers.py starts it",
    "edges/metaschedule/self_test.py": "a child: commands/test_doctor.py starts it",
    "engine/workers/ray_cluster/actors.py": "actors of Ray: ray_cluster/test_cluster.py",
    "runtimes/tensorrt/engine.py": "needs a device: tests/gpu/test_runtimes_on_a_gpu.py",
    "runtimes/tensorrt/engine_build.py": "needs a device: tests/gpu/test_runtimes_on_a_gpu.py",
    "runtimes/tensorrt/layer_profile.py": "needs a device: tests/gpu/test_runtimes_on_a_gpu.py",
    "runtimes/tensorrt/library.py": "needs a device: tests/gpu/test_runtimes_on_a_gpu.py",
    "runtimes/bench_worker.py": "a child: edges/bench/test_pair_bench.py starts it",
    "runtimes/build_child.py": "a child: runtimes/test_builder.py starts it",
}
MIN_SHARE = 0.95


def test_nearly_every_module_has_its_test() -> None:
    modules = [path for path in PRODUCT if has_behaviour(path) and not is_excepted(path)]
    without = [path for path in modules if not any(test.exists() for test in mirrors_of(path))]
    share = 1 - len(without) / len(modules)
    assert share >= MIN_SHARE, "\n".join(name_of(path) for path in without)


def test_every_exception_is_a_module() -> None:
    missing = [end for end in STARTED_BY_OTHERS if not any(is_named(path, end) for path in PRODUCT)]
    assert not missing


def mirrors_of(path: Path) -> Iterator[Path]:
    """The file or the folder that mirrors the module; a command may be run as users run it."""
    for part, package in PACKAGES.items():
        if path.is_relative_to(package):
            inside = path.relative_to(package)
            home = ROOT / "tests" / part / inside.parent
            yield home / f"test_{path.name}"
            yield home / path.stem
            if inside.parts[0] == "commands":
                yield ROOT / "tests" / "e2e" / f"test_{path.name}"


def has_behaviour(path: Path) -> bool:
    """Whether it has a function that is not only declared, as those of protocols are."""
    if path.stem in {"__init__", "__main__"} or not any(
        path.is_relative_to(package) for package in PACKAGES.values()
    ):
        return False
    tree = tree_of(path)
    declared = {
        id(node)
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef) and any("Protocol" in ast.unparse(b) for b in kind.bases)
        for node in ast.walk(kind)
    }
    return any(isinstance(node, Function) and id(node) not in declared for node in ast.walk(tree))


def is_excepted(path: Path) -> bool:
    return any(is_named(path, end) for end in STARTED_BY_OTHERS)


def is_named(path: Path, end: str) -> bool:
    return path.as_posix().endswith(f"/{end}")
