from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.tuning_records import make_key
from tunegate.artifacts.builds import NumericCheck
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.checks.check_messages import Checked
from tunegate.edges.processes.child import ChildDiedError
from tunegate.engine.protocol import Built, BuiltFunction, CompileReply, Failed
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.finished_build import finished

JOB = BuildJob(
    model=ModelJob(file=Path("/m.onnx"), path="m.onnx", shapes={}, target=TargetConfig(name="cpu")),
    records={},
    sources={},
    directory=Path("/out/builds/head"),
)
FUNCTION = BuiltFunction(
    key=make_key(),
    name="conv",
    function="conv2d",
    weight=2,
    source="search",
    rid="r",
    ms=1.5,
    verified=False,
)
REPLY = Built(
    key="k",
    reference="ref",
    functions=(FUNCTION,),
    size_bytes=9,
    seconds=3.0,
    dropped=("dense",),
)

RIGHT = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.1)
WRONG = msgspec.structs.replace(RIGHT, passed=False, detail="off by 3")


def test_a_build_says_what_it_is_made_of() -> None:
    build = finished(JOB, REPLY, Checked(RIGHT), crashed=False)
    assert (build.key, build.directory, build.error) == ("k", "head", None)
    assert (build.size_bytes, build.seconds, build.dropped) == (9, 3.0, ("dense",))
    (task,) = build.tasks
    assert (task.name, task.weight, task.source, task.ms) == ("conv", 2, "search", 1.5)
    assert (task.rid, task.verified, task.key) == ("r", False, make_key())
    assert build.check == RIGHT


def test_a_build_that_computes_other_numbers_is_an_error_with_its_check() -> None:
    build = finished(JOB, REPLY, Checked(WRONG), crashed=False)
    assert build.error == "m.onnx: the compiled model computes other numbers: off by 3."
    assert build.check == WRONG


def test_a_build_that_no_device_here_can_run_is_not_checked() -> None:
    build = finished(JOB, REPLY, Checked(), crashed=False)
    assert (build.check, build.error) == (None, None)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Failed(model=True, reason="no memory"), "does not run (no memory)"),
        (ChildDiedError("was killed by SIGSEGV"), "was killed by SIGSEGV when it was run"),
    ],
)
def test_a_build_that_does_not_run_is_an_error(
    answer: CompileReply | ChildDiedError, said: str
) -> None:
    build = finished(JOB, REPLY, answer, crashed=True)
    assert build.check is None
    assert build.error is not None
    assert said in build.error
    assert build.crashed
