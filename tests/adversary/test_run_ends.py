"""Attacks on the machine that runs the gate: models that ask for more than there is, children that
never answer. The run ends, in time, and says why."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.adversary.pull_request import GATED, MODEL, PullRequest
from tests.support.small_onnx import conv_model, save

pytestmark = pytest.mark.e2e

COMPILED = GATED.replace("runtime: onnxruntime", "runtime: tvm")


def bomb() -> onnx.ModelProto:
    """A few hundred bytes; folded, or run, it takes twice the memory of this machine."""
    count = 2 * psutil.virtual_memory().total // 4
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["big"], value=one),
        helper.make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.array([count], np.int64), "shape")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_model_that_needs_more_memory_than_there_is_is_an_error_of_its_own(
    tmp_path: Path,
) -> None:
    pull_request = PullRequest(tmp_path)
    pull_request.write("models/readme", "")
    save(bomb(), pull_request.root / "models/bomb.onnx")
    judged = pull_request.judge()
    assert judged.exit_code == 2
    assert judged.status("models/bomb.onnx") == "error"
    assert "it needs more than the" in judged.err + judged.out


def test_a_compiler_is_refused_more_memory_than_there_is(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, COMPILED)
    save(bomb(), pull_request.root / "models/bomb.onnx")
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("plan", "--base", "main")
    assert done.returncode == 0
    assert "models/bomb.onnx is not tuned: it needs more than the" in done.stderr


def test_a_compiler_that_is_stopped_costs_its_model_and_seconds(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, COMPILED)
    save(conv_model(), pull_request.root / MODEL)
    pull_request.workspace.commit()
    with pull_request.workspace.start("plan", "--base", "main") as process:
        for child in compilers_of(process.pid):
            child.send_signal(signal.SIGSTOP)
        _, err = process.communicate(timeout=240)  # nobody lets the child go on
    assert process.returncode == 0
    assert f"{MODEL} (head) is not tuned: the compiler was stopped by a signal for 10 s" in err


def test_a_model_of_millions_of_parts_is_one_line(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    nodes = b"\x0a\x00" * 3_100_000  # empty, and a hundred bytes each once they are parsed
    length = len(nodes)
    prefix = bytes([0x3A, *(length >> 7 * n & 0x7F | 0x80 for n in range(3)), length >> 21])
    (pull_request.root / MODEL).write_bytes(prefix + nodes)
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("detect", "--base", "main")
    assert done.returncode == 0
    assert "it has more than 3,000,000 parts" in done.stdout


def compilers_of(pid: int) -> list[psutil.Process]:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = [
            child
            for child in psutil.Process(pid).children(recursive=True)
            if any(word == "tunegate.compiler.compile" for word in words_of(child))
        ]
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("no compiler was started")


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing of one that has ended meanwhile."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []
