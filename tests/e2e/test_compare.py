"""One ONNX file against another, as a user runs it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_promote import records
from tests.support.models import stock_tvm
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import CONFIG, FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)


def test_a_file_against_itself_passes_without_measuring(workspace: Workspace) -> None:
    done = workspace.tunegate("compare", "models/m.onnx", "models/m.onnx", "--json")
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["status"], verdict["findings"]) == ("pass", [])


def test_a_name_with_brackets_keeps_its_shapes(workspace: Workspace) -> None:
    odd = workspace.root / "m[v2].onnx"
    odd.write_bytes((workspace.root / "models" / "m.onnx").read_bytes())
    done = workspace.tunegate("compare", str(odd), str(odd), "--shape", "no_such_input=1")
    assert done.returncode == 2
    assert "no such input" in done.stderr


def test_no_repository_is_needed(workspace: Workspace, tmp_path: Path) -> None:
    model = str(workspace.root / "models" / "m.onnx")
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    line = ["compare", model, model, "--repository", str(lonely), "--out", str(lonely / "out")]
    assert workspace.tunegate(*line).returncode == 0


def test_what_earlier_runs_have_built_is_compared_without_building_it_again(
    workspace: Workspace,
) -> None:
    """Two artifacts, and what production runs as the base of a new model with much more work."""
    assert workspace.tunegate("run").returncode == 0
    (built,) = (workspace.root / ".tunegate" / "builds").glob("*/cpu/head")
    kept = shutil.copytree(built, workspace.root / "production")
    done = workspace.tunegate("compare", "production", str(kept), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"][0]["reason"] == "identical build, not measured"
    save(conv_model(channels=16, out=32, size=42), workspace.root / "wide.onnx")
    done = workspace.tunegate("compare", "production", "wide.onnx", "--json")
    assert done.returncode == 1, done.stderr
    verdict = json.loads(done.stdout)
    (finding,) = verdict["findings"]
    assert finding["base_ms"] < finding["head_ms"]
    assert finding["change_percent"]["low"] > 3
    assert verdict["tuning"]["trials"] == 0


def test_a_metric_of_the_users_own_that_gets_worse_is_red(workspace: Workspace) -> None:
    save(conv_model(channels=16, out=32, size=14, seed=5), workspace.root / "retrained.onnx")
    workspace.write("score.py", "import sys; print(0.7 if '/base' in sys.argv[1] else 0.6)\n")
    command = f"{sys.executable} score.py"
    line = ["compare", "models/m.onnx", "retrained.onnx", "--json", "--metric-command", command]
    done = workspace.tunegate(*line)
    assert done.returncode == 1, done.stderr
    assert "metric 0.7 to 0.6" in json.loads(done.stdout)["findings"][0]["reason"]


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
    lines = [f'{sys.executable} -c "{program.format(ms)}"' for ms in (10, head_ms)]
    done = workspace.tunegate("compare", "--commands", *lines)
    assert done.returncode == code, done.stderr


# What the cache knows, in the hands of plain TVM.

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
