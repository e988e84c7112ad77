"""A runtime in a package of its own: installed, found, chosen, measured, profiled, reported and
loaded, with no edit outside of that package."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.plugins.plugin_environment import PLUGINS, PluginEnvironment, page_of
from tests.support.small_onnx import model_of, save
from tests.support.workspace import CONFIG, FIRST_ANALYSIS, NOT_COMPILED, Workspace

EXAMPLE = PLUGINS / "runtime_example"
GATE = "gate:\n  pairs: 4\n  seconds: 20\n  rare-launches: 0\n"
"""Long enough for an election on a busy machine."""
pytestmark = pytest.mark.e2e


def dense(layers: int, width: int = 8) -> onnx.ModelProto:
    """A model of so many products and a Relu: NumPy is done before a session has begun."""
    nodes = [
        helper.make_node("MatMul", [f"x{n}" if n else "x", "w"], [f"x{n + 1}"], name=f"product{n}")
        for n in range(layers)
    ]
    last = f"x{layers}" if layers else "x"
    nodes.append(helper.make_node("Relu", [last], ["y"], name="positive"))
    weights = {"w": np.eye(width, dtype=np.float32) / 2} if layers else {}
    return model_of(nodes, {"x": [1, width]}, {"y": [1, width]}, weights)


def test_the_fastest_of_three_runtimes_ships_and_is_reported(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG.replace("trials: 2", "trials: 0") + GATE)
    save(dense(0), workspace.root / "models" / "new.onnx")
    workspace.commit()
    done = environment.run(
        "-m", "tunegate", "run", "--base", "HEAD~1", "--json", cwd=workspace.root
    )
    assert done.returncode == 0, done.stderr
    out = workspace.root / ".tunegate"
    (built,) = json.loads((out / "measurements.json").read_text())["builds"]
    head = built["head"]
    times = {time["candidate"]: time["ms"] for time in head["choice"]["times"]}
    assert list(times) == ["tvm", "onnxruntime", "numpy_example"]
    assert (head["runtime"], head["check"]["passed"]) == ("numpy_example", True)
    assert "`models/new.onnx` on `cpu` ships with NumPy, " in (out / "report.md").read_text()
    expected = {"artifact.json", "model.onnx"}
    assert {path.name for path in (out / head["directory"]).iterdir()} == expected
    feed = "{'x': np.arange(-4, 4, dtype='float32').reshape(1, 8)}"
    program = (
        "import sys, pathlib, numpy as np\nfrom tunegate.runtimes.loading import load\n"
        f"print(load(pathlib.Path(sys.argv[1])).run({feed})[0].sum())\n"
    )
    loaded = environment.run("-c", program, str(out / head["directory"]), cwd=tmp_path)
    assert float(loaded.stdout) == 6.0, loaded.stderr


def test_a_slowdown_under_it_fails_and_names_its_operators(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    """Nothing is built for the other runtimes, which nobody asked for."""
    files = [save(dense(n, 256), tmp_path / f"{n}.onnx") for n in (2, 4)]
    (tmp_path / "tunegate.yaml").write_text(CONFIG + FIRST_ANALYSIS)
    line = [f"numpy_example:{file}" for file in files]
    done = environment.run("-m", "tunegate", "compare", *line, "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["change_percent"]["low"] > 3
    assert {difference["name"] for difference in finding["differences"]} >= {"product2", "product3"}
    (folder,) = (tmp_path / ".tunegate" / "builds").glob("*/cpu")
    assert sorted(path.name for path in folder.iterdir()) == ["base", "head"]


def test_one_that_cannot_be_imported_is_one_line_and_changes_no_verdict(tmp_path: Path) -> None:
    environment = PluginEnvironment(tmp_path / "e")
    environment.install_broken(EXAMPLE, "numpy_runtime.py", tmp_path)
    workspace = Workspace(tmp_path / "w", NOT_COMPILED)
    done = environment.run("-m", "tunegate", "run", "--json", cwd=workspace.root)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "new"), done.stderr
    line = (
        'tunegate-runtime-example 1.0: "numpy_runtime:RUNTIME" cannot be loaded '
        "(ModuleNotFoundError: No module named 'a_library_that_is_not_here')"
    )
    assert done.stderr.count(line) == 1
    checked = environment.run("-m", "tunegate", "doctor", "--json", cwd=workspace.root)
    assert [c["detail"] for c in json.loads(checked.stdout)["checks"] if not c["ok"]] == [line]


def test_the_page_about_adding_a_runtime_shows_this_package() -> None:
    page = page_of("A runtime", EXAMPLE, 3)
    for name in ("name", "title", "unsupported", "variants", "versions", "save", "load"):
        assert f"`{name}`" in page
    for name in ("run", "bound", "operators_ms"):
        assert f"`{name}`" in page
