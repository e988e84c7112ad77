"""A model is built for a device, checked there and looked into: both faults that ended each run on
the first GPU are found here without one."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cuda_stand_in.fixtures import WhatCuda
from tests.support.programs import run_program
from tests.support.small_onnx import model_of, save, typed

pytestmark = [pytest.mark.cuda_stand_in, pytest.mark.timeout(900)]
BUILDS = """
import json, sys
from contextlib import closing
from pathlib import Path
from tunegate.artifacts.candidates import LAUNCH, PRECISION
from tunegate_whole_model.forms import WHOLE
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import BuildJob, ModelJob, Turns
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
place, is_whole = Path(sys.argv[1]), sys.argv[2] == "whole"
precision = {PRECISION: sys.argv[2]} if sys.argv[2].endswith(("16", "32")) else {}
target = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
model = ModelJob(file=place / "m.onnx", path="m.onnx", shapes={}, target=target)
settings = {LAUNCH: WHOLE} if is_whole else precision
job = BuildJob(
    model=model,
    records={},
    sources={},
    directory=place / "out",
    settings=settings,
    samples=3 if precision else 0,
)
with closing(MetaScheduleCompiler(place / "compiler", seed=1)) as compiler:
    (built,) = compiler.build([job])
found = {
    "error": built.error,
    "without_graphs": built.without_graphs,
    "is_right": built.check is not None and built.check.passed,
    "errors": built.sampled.relative if built.sampled else [0],
    "lower": [task.name for task in built.tasks if task.source == "tiles"],
}
if not is_whole:
    bench, out = FreshProcesses(place / "bench", 1, target), place / "out"
    turns = [] if precision else [bench.profiled_both(out, out, 1, Turns(2, rounds=1))]
    found["layers"] = [dict(bench.operators_ms(out)), *(ms for t in turns for ms in t.milliseconds)]
    found["names"] = sorted(task.name for task in built.tasks)
print(json.dumps(found))
"""


def embedding_model() -> onnx.ModelProto:
    """Rows of a table by their numbers and by the count of tokens before them, and two products of
    them: an index that is no number of a row reads beyond the table."""
    draw = np.random.default_rng(0)
    sizes = {"table": (50, 16), "places": (17, 16), "v": (16, 16), "w": (16, 16)}
    weights = {
        name: draw.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()
    }
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["words"], name="words"),
        helper.make_node("Sign", ["ids"], ["is_word"], name="is_word"),
        helper.make_node("CumSum", ["is_word", "axis"], ["count"], name="count"),
        helper.make_node("Gather", ["places", "count"], ["at"], name="at"),
        helper.make_node("Add", ["words", "at"], ["rows"], name="rows"),
        helper.make_node("MatMul", ["rows", "v"], ["first"], name="first"),
        helper.make_node("Softmax", ["first"], ["shares"], name="shares"),
        helper.make_node("MatMul", ["shares", "w"], ["y"], name="second"),
    ]
    ids = typed(TensorProto.INT64, [16])
    return model_of(nodes, {"ids": ids}, {"y": [16, 16]}, weights | {"axis": np.array(0)})


def built_and_looked_into(
    model: onnx.ModelProto, cuda_stand_in: WhatCuda, place: Path, launch: str
) -> Any:
    save(model, place / "m.onnx")
    done = run_program(
        [sys.executable, "-c", BUILDS, str(place), launch],
        env=cuda_stand_in(multiprocessors=1, memory_mb=512),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("launch", ["kernels", "tfloat32", "float16", "whole"])
def test_a_model_with_an_embedding_is_built_and_right(
    cuda_stand_in: WhatCuda, tmp_path: Path, launch: str
) -> None:
    """With a launch for each kernel they are captured, and each has its time all the same (in
    lower precision too; in float32 also where both sides take turns in one process); as one launch
    they are timed one by one, in any order."""
    found = built_and_looked_into(embedding_model(), cuda_stand_in, tmp_path, launch)
    is_lower = launch.endswith(("16", "32"))
    assert (found["error"], found["without_graphs"], found["is_right"]) == (None, "", not is_lower)
    assert found["lower"] == (["first, second"] if is_lower else [])
    assert (max(found["errors"]) > 0, max(found["errors"]) < 0.01) == (is_lower, True)
    if launch != "whole":
        for layers in found["layers"]:
            assert sorted(layers) == sorted(set(found["names"]))
            assert all(milliseconds > 0 for milliseconds in layers.values())


def gate_model() -> onnx.ModelProto:
    """Eight sums, each a factor of an image: a block of TVM's has threads for sixteen."""
    draw = np.random.default_rng(0)
    weights = {"w": draw.standard_normal((8, 2, 1, 1)).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["sums"], name="sums"),
        helper.make_node("Mul", ["image", "sums"], ["y"], name="gate"),
    ]
    image = [1, 8, 6, 8]
    return model_of(nodes, {"x": [1, 2, 1, 1], "image": image}, {"y": image}, weights)


def test_few_sums_are_written_where_their_variable_ends(
    cuda_stand_in: WhatCuda, tmp_path: Path
) -> None:
    found = built_and_looked_into(gate_model(), cuda_stand_in, tmp_path, "kernels")
    assert (found["error"], found["is_right"], found["names"]) == (None, True, ["sums"])
