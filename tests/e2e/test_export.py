"""What the cache knows, in the hands of plain TVM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_plain_tvm_builds_with_an_exported_database(tmp_path: Path, layout: str) -> None:
    target = f"targets:\n  - name: cpu\n    layout: {layout}\n    runtime: tvm\n    threads: 1\n"
    workspace = Workspace(tmp_path / "w", target + CONFIG.replace("trials: 2", "trials: 6"))
    done = workspace.tunegate("run")
    assert done.returncode == 0, done.stderr
    exported = workspace.tunegate("cache", "export", "stock", "--json")
    assert exported.returncode == 0, exported.stderr
    (model,) = json.loads(exported.stdout)["models"]
    assert model["written"] >= 1
    assert model["misfits"] == []
    plain = subprocess.run(
        [sys.executable, "-c", PLAIN_TVM, "models/m.onnx", "stock/cpu", layout],
        cwd=workspace.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert plain.returncode == 0, plain.stderr[-2000:]
    found = json.loads(plain.stdout.splitlines()[-1])
    assert found["records"] == model["written"]
    assert found["scheduled"] >= model["written"]
    again = workspace.tunegate("cache", "export", "stock")
    assert again.returncode == 2
    assert "holds a database already" in again.stderr
