"""One ONNX file against another, as a user runs it."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.small_onnx import conv_model, matmul_model, save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, UNDECIDED_GATE, Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)


def test_a_file_against_itself_passes_without_measuring(workspace: Workspace) -> None:
    done = workspace.tunegate("compare", "models/m.onnx", "models/m.onnx", "--json", code=0)
    verdict = json.loads(done.stdout)
    assert (verdict["status"], verdict["findings"]) == ("pass", [])


def test_a_name_with_brackets_keeps_its_shapes(workspace: Workspace) -> None:
    odd = workspace.root / "m[v2].onnx"
    odd.write_bytes((workspace.root / "models" / "m.onnx").read_bytes())
    done = workspace.tunegate("compare", str(odd), str(odd), "--shape", "no_such_input=1", code=2)
    assert "no such input" in done.stderr


def test_each_side_takes_the_shapes_of_its_own_inputs(workspace: Workspace) -> None:
    base, head = matmul_model(rows="n"), matmul_model(rows="k")
    head.graph.input[0].name = head.graph.node[0].input[0] = "renamed"
    for name, model in {"base.onnx": base, "head.onnx": head}.items():
        save(model, workspace.root / name)
    line = ("compare", "base.onnx", "head.onnx", "--shape", "x=4,16")
    assert "head.onnx: the shape of renamed is" in workspace.tunegate(*line, code=2).stderr
    done = workspace.tunegate(*line, "--shape", "renamed=4,16", "--json")
    assert json.loads(done.stdout)["findings"][0]["change_percent"] is not None


@pytest.mark.parametrize("head", ["models/m.onnx", "onnxruntime:models/m.onnx"])
def test_a_runtime_that_is_named_must_be_here(workspace: Workspace, head: str) -> None:
    done = workspace.tunegate("compare", "tensorrt:models/m.onnx", head, code=2)
    assert "target cpu: runtime tensorrt" in done.stderr


def test_no_repository_is_needed(workspace: Workspace, tmp_path: Path) -> None:
    model = str(workspace.root / "models" / "m.onnx")
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    line = ["compare", model, model, "--repository", str(lonely), "--out", str(lonely / "out")]
    assert workspace.tunegate(*line).returncode == 0


def test_what_earlier_runs_built_is_compared_and_not_built_again(workspace: Workspace) -> None:
    """Two artifacts, and what production runs as the base of a new model with much more work: by
    two gates at once, which share the cores."""
    assert workspace.tunegate("run").returncode == 0
    (built,) = (workspace.root / ".tunegate" / "builds").glob("*/cpu/head")
    kept = shutil.copytree(built, workspace.root / "production")
    done = workspace.tunegate("compare", "production", str(kept), "--json", code=0)
    assert json.loads(done.stdout)["findings"][0]["reason"] == "identical build, not measured"
    done = workspace.tunegate("compare", "production", str(kept), "--shape", "x=1,2", code=2)
    assert "--shape is for models, and both sides are artifacts" in done.stderr
    save(conv_model(channels=16, out=32, size=42), workspace.root / "wide.onnx")
    line = ("compare", "production", "wide.onnx", "--json", "--out")
    for gate in [workspace.start(*line, each) for each in ("one", "other")]:
        with gate:
            out, err = gate.communicate()
        assert gate.returncode == 1, err
        verdict = json.loads(out)
        (finding,) = verdict["findings"]
        assert finding["base_ms"] < finding["head_ms"]
        assert finding["change_percent"]["low"] > 3
        assert verdict["tuning"]["trials"] == 0


def test_a_metric_of_the_users_own_that_gets_worse_is_red(workspace: Workspace) -> None:
    save(conv_model(channels=16, out=32, size=14, seed=5), workspace.root / "retrained.onnx")
    workspace.write("score.py", "import sys; print(0.7 if '/base' in sys.argv[1] else 0.6)\n")
    command = f"{sys.executable} score.py"
    line = ["compare", "models/m.onnx", "retrained.onnx", "--json", "--metric-command", command]
    done = workspace.tunegate(*line, code=1)
    assert "metric 0.7 to 0.6" in json.loads(done.stdout)["findings"][0]["reason"]


def test_a_model_that_loads_slower_fails_where_loading_has_a_margin(workspace: Workspace) -> None:
    """The head squares a large constant, which the session does before it is ready."""
    workspace.write("tunegate.yaml", NOT_COMPILED + UNDECIDED_GATE + "  load-margin-percent: 50\n")
    model = onnx.load(workspace.root / "models" / "m.onnx")
    large = np.ones((1536, 1536), dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(large, "large"))
    made = model.graph.output[0].name
    model.graph.output[0].name = "sum"
    model.graph.node.extend(
        [
            helper.make_node("MatMul", ["large", "large"], ["square"]),
            helper.make_node("ReduceMax", ["square"], ["most"], keepdims=0),
            helper.make_node("Add", [made, "most"], ["sum"]),
        ]
    )
    save(model, workspace.root / "slow.onnx")
    done = workspace.tunegate("compare", "models/m.onnx", "slow.onnx", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["status"]) == (1, "fail"), done.stderr
    assert "ms of the processor), over its 50% margin" in finding["reason"]
    assert finding["load"]["decision"] == "fail"


@pytest.mark.proof
def test_one_model_under_both_runtimes(workspace: Workspace) -> None:
    """Not tuned: what is compared is whatever each of them builds."""
    model = "models/m.onnx"
    config = NOT_COMPILED.replace("trials: 2", "trials: 0") + FIRST_ANALYSIS
    workspace.write("tunegate.yaml", config)
    done = workspace.tunegate("compare", f"onnxruntime:{model}", f"tvm:{model}", "--json")
    assert done.returncode in {0, 1, 3, 4}, done.stderr  # the machine may be too busy to tell
    (builds,) = json.loads((workspace.root / ".tunegate" / "measurements.json").read_text())[
        "builds"
    ]
    assert (builds["base"]["runtime"], builds["head"]["runtime"]) == ("onnxruntime", "tvm")
    assert json.loads(done.stdout)["findings"][0]["launches"] >= 4


@pytest.mark.parametrize(("head_ms", "code"), [(10, 0), (12, 1)])
def test_two_commands_that_print_latencies(workspace: Workspace, head_ms: int, code: int) -> None:
    program = "import random; [print({} * random.gauss(1, 0.001)) for _ in range(9)]"
    lines = [f'{sys.executable} -c "{program.format(ms)}" tok-123456' for ms in (10, head_ms)]
    workspace.tunegate("compare", "--commands", *lines, code=code, API_TOKEN="tok-123456")
    for file in (workspace.root / ".tunegate").iterdir():
        assert file.is_dir() or b"tok-123456" not in file.read_bytes()
