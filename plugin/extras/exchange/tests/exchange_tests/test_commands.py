"""The cache's schedules in the hands of plain TVM, and TVM's own on their way into the cache."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_promote import records
from tests.support.programs import run_program
from tests.support.reference_page import command_section
from tests.support.small_onnx import conv_model
from tests.support.workspace import CONFIG, Workspace

from exchange_tests import stock_tvm
from tunegate_exchange.commands import EXPORT, IMPORT

pytestmark = pytest.mark.e2e


def test_the_page_of_the_extra_lists_every_option() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    shared = "](../../../docs/commands.md#options-"
    for command in (EXPORT, IMPORT):
        assert command_section(command).strip("\n").replace("](#options-", shared) in page


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
    plain = run_program(
        [sys.executable, "-c", PLAIN_TVM, "models/m.onnx", f"stock/{layout}", layout],
        cwd=workspace.root,
    )
    assert plain.returncode == 0, plain.stderr[-2000:]
    found = json.loads(plain.stdout.splitlines()[-1])
    assert found["records"] == model["written"]
    assert found["scheduled"] >= model["written"]


# A stock database on its way into the cache, as a user runs it.


def stock_database(workspace: Workspace, directory: Path) -> Path:
    """Written by plain TVM, for other names, another machine and another number of cores."""
    directory.mkdir()
    made = run_program(
        [sys.executable, stock_tvm.__file__, "models/m.onnx", str(directory)], cwd=workspace.root
    )
    assert made.returncode == 0, made.stderr[-2000:]
    return directory / "database_tuning_record.json"


def test_what_a_stock_database_knows_is_measured_here_first(tmp_path: Path) -> None:
    target = "targets:\n  - name: cpu\n    layout: nchw\n    runtime: tvm\n    threads: 1\n"
    workspace = Workspace(tmp_path / "w", target + CONFIG.replace("trials: 2", "trials: 6"))
    # With three pixels in a row no default schedule is good, so that any other one is taken.
    workspace.begin_with(conv_model(channels=64, out=64, size=3))
    file = stock_database(workspace, tmp_path / "stock")
    honest = file.read_text().splitlines()
    code = json.loads(honest[0])
    code[1][0][0].append(["Annotate", ["b1", '"#error"'], ["pragma_import_c"], []])
    no_tile = json.loads(honest[1])
    no_tile[1][0][1][0][1] = [5, 1, 1, 1]
    lies = [
        json.dumps(code),
        json.dumps(no_tile),
        "[" * 100_000,
        "{}",
        "[0,[[[],[]],[-1.0],{},[]]]",
    ]
    file.write_text("\n".join([*lies, *honest]))
    imported = workspace.tunegate("cache", "import", str(tmp_path / "stock"), "--json")
    assert imported.returncode == 0, imported.stderr
    found = json.loads(imported.stdout)
    assert found["read"] == len(honest) + len(lies)
    assert found["refused"] == {"not a tuning record": 2, "no time was measured": 1}
    assert 1 <= found["fitting"] <= len(honest)
    (task,) = found["tasks"]
    assert task["status"] == "taken"
    assert task["claimed_ms"] == 0.001
    assert task["measured_ms"] > 0.001
    (ours,) = records(workspace, "main")
    assert ours.source.run == "import"
    assert ours.median_ms == task["measured_ms"]
    used = workspace.tunegate("plan", "--out", "p")
    assert used.returncode == 0, used.stderr
    assert "0 shards to tune" in used.stdout
