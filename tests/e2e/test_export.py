"""What the cache knows, in the hands of plain TVM."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.workspace import CONFIG, Workspace

pytestmark = pytest.mark.e2e

PLAIN_TVM = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy, onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

assert not any(name.startswith("tunegate") for name in sys.modules)
model, folder, layout = sys.argv[1:]
database = ms.database.JSONDatabase(work_dir=folder)
first = json.loads(open(folder + "/database_tuning_record.json").readline())
target = tvm.target.Target(first[1][2])
with target:
    module = from_onnx(onnx.load(model))
    if layout == "nhwc":
        module = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]})(module)
    module = relax.get_pipeline("zero")(module)
    with database, tvm.transform.PassContext(opt_level=3):
        module = relax.transform.MetaScheduleApplyDatabase()(module)
    scheduled = [
        str(name) for name, f in module.functions.items()
        if f.attrs and "tirx.is_scheduled" in f.attrs
    ]
    executable = relax.build(module, target=target)
machine = relax.VirtualMachine(executable, tvm.cpu())
shape = [int(n) for n in module["main"].params[0].ty.shape.values]
out = machine["main"](tvm.runtime.tensor(numpy.ones(shape, "float32"), tvm.cpu()))
print(json.dumps({"records": len(database), "scheduled": len(scheduled)}))
"""


LAYOUTS = ("nchw", "nhwc")


Exported = tuple[Workspace, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A workspace with a database for each layout, and what was said of each."""
    target = "  - name: {0}\n    layout: {0}\n    runtime: tvm\n    threads: 1\n"
    targets = "targets:\n" + "".join(map(target.format, LAYOUTS))
    root = tmp_path_factory.mktemp("exported") / "w"
    workspace = Workspace(root, targets + CONFIG.replace("trials: 2", "trials: 8"))
    for line in (["plan"], ["tune"], ["tune", "--shard", "1"]):
        done = workspace.tunegate(*line)
        assert done.returncode == 0, done.stderr
    done = workspace.tunegate("cache", "export", "stock", "--json")
    assert done.returncode == 0, done.stderr
    models = json.loads(done.stdout)["models"]
    return workspace, {model["target"]: model for model in models}


def test_a_directory_with_a_database_is_not_written_again(exported: Exported) -> None:
    again = exported[0].tunegate("cache", "export", "stock")
    assert again.returncode == 2
    assert "holds a database already" in again.stderr


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plain_tvm_builds_with_an_exported_database(exported: Exported, layout: str) -> None:
    workspace, models = exported
    model = models[layout]
    assert model["written"] >= 1
    assert model["misfits"] == []
    plain = subprocess.run(
        [sys.executable, "-c", PLAIN_TVM, "models/m.onnx", f"stock/{layout}", layout],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr[-2000:]
    found = json.loads(plain.stdout.splitlines()[-1])
    assert found["records"] == model["written"]
    assert found["scheduled"] >= model["written"]
