"""A model ships with the runtime that is faster, and a team may use the gate without a compiler."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, one_node_model, save
from tests.support.workspace import CONFIG, FIRST_ANALYSIS, NOT_COMPILED, Workspace
from tunegate.config import TargetConfig
from tunegate.ports import Builder, BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

pytestmark = pytest.mark.e2e

NO_COMPILER = "raise ImportError('there is no compiler on this machine')\n"


def test_the_documented_loader_runs_the_artifacts_of_both_runtimes(tmp_path: Path) -> None:
    """The loader runs in processes of its own: it sets TVM's threads before the first import."""
    file = save(conv_model(), tmp_path / "m.onnx")
    target = TargetConfig(name="cpu", threads=1)
    model = ModelJob(file=file, path="m.onnx", shapes={}, target=target)
    compiler = MetaScheduleCompiler(tmp_path / "c", seed=1)
    builders: dict[str, Builder] = {"a": compiler, "b": reference_builder(tmp_path / "o", 1)}
    for name, builder in builders.items():
        job = BuildJob(model=model, records={}, sources={}, directory=tmp_path / name)
        (build,) = builder.build([job])
        assert build.error is None
    compiler.close()
    (block,) = re.findall(r"```python\n(.*?)```", Path("docs/artifacts.md").read_text(), re.DOTALL)
    ask = "import sys, numpy as np\nfeed = {'x': np.ones((1, 8, 8, 8), 'float32')}\n"
    show = "print(load(sys.argv[1])(feed)[0].sum())\n"
    sums = [
        float(
            run_program(
                [sys.executable, "-c", block + ask + show, str(tmp_path / name)], check=True
            ).stdout
        )
        for name in builders
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-4)


def test_what_the_compiler_lacks_ships_with_onnx_runtime(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG + FIRST_ANALYSIS)
    save(one_node_model("Det"), workspace.root / "models" / "det.onnx")
    workspace.commit()
    done = workspace.tunegate("run", "--base", "HEAD~1", code=0)
    assert 'ships with ONNX Runtime (TVM: operator Det (node "odd")' in done.stderr


@pytest.mark.proof
def test_a_team_without_a_compiler_uses_the_gate_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    (tmp_path / "no" / "tvm").mkdir(parents=True)
    (tmp_path / "no" / "tvm" / "__init__.py").write_text(NO_COMPILER)
    save(conv_model(channels=16, out=32, size=42), workspace.root / "models" / "m.onnx")
    workspace.commit()
    done = workspace.tunegate(
        "run", "--base", "HEAD~1", "--json", PYTHONPATH=str(tmp_path / "no"), code=1
    )
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["change_percent"]["low"] > 3
    assert finding["differences"][0]["source"] == "library"
