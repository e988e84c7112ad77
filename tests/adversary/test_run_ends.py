"""Attacks on the machine that runs the gate: models that ask for more than there is, children that
never answer. The run ends, in time, and says why."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper

from tests.adversary.pull_request import GATED, MODEL, PullRequest
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, model_of, save
from tests.support.workspace import CONFIG, NOT_COMPILED, Workspace

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
    return model_of(nodes, {"x": [4]}, {"y": [4]}, {"shape": np.array([count], np.int64)})


def test_a_model_that_needs_more_memory_than_there_is_is_an_error_of_its_own(
    pull_request: PullRequest,
) -> None:
    pull_request.write("models/readme", "")
    save(bomb(), pull_request.root / "models/bomb.onnx")
    judged = pull_request.judge(code=2)
    assert judged.status("models/bomb.onnx") == "error"
    assert "it needs more than the" in judged.err + judged.out


def test_a_compiler_is_refused_more_memory_than_there_is(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path, COMPILED)
    save(bomb(), pull_request.root / "models/bomb.onnx")
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("plan", "--base", "main", code=0)
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


def test_a_model_of_millions_of_parts_is_one_line(pull_request: PullRequest) -> None:
    nodes = b"\x0a\x00" * 3_100_000  # empty, and a hundred bytes each once they are parsed
    length = len(nodes)
    prefix = bytes([0x3A, *(length >> 7 * n & 0x7F | 0x80 for n in range(3)), length >> 21])
    (pull_request.root / MODEL).write_bytes(prefix + nodes)
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("detect", "--base", "main", code=0)
    assert (
        "takes more than 256 MiB of memory to be read: it has very many small parts" in done.stdout
    )


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


# An installation that is not whole, an interpreter or a machine that lacks something: never exit
# code 1, which would be read as a regression.

ROOT = Path(__file__).resolve().parents[2]

Damage = Callable[[Path], object]


def lost(name: str) -> Damage:
    return lambda sources: (sources / name).unlink()


def overwritten(name: str, text: str) -> Damage:
    return lambda sources: (sources / name).write_text(text)


def beforehand(program: str) -> Damage:
    """Damage that is done to a machine before our first line runs."""
    return overwritten("../sitecustomize.py", program)


DAMAGES: dict[str, tuple[Damage, int]] = {
    "a module of ours is missing": (lost("cli/main.py"), 4),
    "the exit codes are missing": (lost("errors.py"), 4),
    "the list of machines is missing": (lost("cli/supported_machine.py"), 4),
    "a module that one command imports is missing": (lost("cli/handlers/steps.py"), 4),
    "a module is cut off": (overwritten("cli/parse.py", "def parse("), 4),
    "a module is binary": (overwritten("config.py", "\0\0"), 4),
    "a module ends the process": (overwritten("cli/command_tree.py", "raise SystemExit(1)"), 70),
    "a module is interrupted": (overwritten("cli/command_tree.py", "raise KeyboardInterrupt"), 130),
    "a module recurses": (overwritten("cli/command_tree.py", "def f(): f()\nf()"), 70),
    "a dependency is missing": (beforehand("import sys; sys.modules['msgspec'] = None"), 4),
    "fcntl is missing": (beforehand("import sys; sys.modules['fcntl'] = None"), 4),
    "memory is out": (overwritten("cli/command_tree.py", "raise MemoryError"), 4),
    "the excepthook breaks too": (
        beforehand("import sys; sys.excepthook = lambda *_: 1 / 0; sys.modules['yaml'] = None"),
        4,
    ),
    "macOS": (beforehand("import platform; platform.system = lambda: 'Darwin'"), 4),
    "musl": (beforehand("import platform; platform.libc_ver = lambda *_: ('', '')"), 4),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("damaged") / "workspace", NOT_COMPILED)


@pytest.mark.parametrize(("damage", "code"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_installation_is_one_line_and_no_regression(
    tmp_path: Path, workspace: Workspace, damage: Damage, code: int
) -> None:
    sources = tmp_path / "sources" / "tunegate"
    shutil.copytree(
        ROOT / "plugin" / "tunegate", sources, ignore=shutil.ignore_patterns("__pycache__")
    )
    damage(sources)
    done = run_program(
        [sys.executable, "-P", "-m", "tunegate", "detect", "--out", str(tmp_path / "out")],
        cwd=workspace.root,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "sources"), "TMPDIR": str(tmp_path)},
        code=code,
    )
    assert done.stderr.startswith("tunegate: error: ")
    assert done.stderr.count("\n") == 1


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leaves = f'cd "{gone}" && rmdir "{gone}" && exec "{sys.executable}" -P -m tunegate detect'
    done = run_program(["bash", "-c", leaves], cwd=tmp_path, code=4)
    assert done.stderr.splitlines()[-1].startswith("tunegate: error: ")


def test_without_git_that_is_said(tmp_path: Path, workspace: Workspace) -> None:
    done = workspace.tunegate("detect", "--out", str(tmp_path / "out"), PATH="/nowhere")
    expected = (4, "tunegate: error: git: not found on the PATH. Install git.\n")
    assert (done.returncode, done.stderr) == expected


def test_the_actions_own_damage_is_an_annotation(tmp_path: Path) -> None:
    for name in ("action", "plugin", "cache"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "plugin" / "tunegate" / "cli" / "entry.py").unlink()
    for module in (
        "action/tunegate_action/main.py",
        "plugin/tunegate/cli/main.py",
        "action/tunegate_action/entry.py",
    ):
        (tmp_path / module).unlink()
        done = run_program(
            [sys.executable, "-P", str(tmp_path / "action" / "bootstrap.py"), "act"],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}/action:{tmp_path}/plugin"},
        )
        assert (done.returncode, done.stderr) == (4, "")
        assert done.stdout.startswith("::error title=tunegate::")


# A compiler that is missing, of another version, or broken: a run that was asked to compile never
# goes on with what is left.

AUTO = CONFIG + "targets:\n  - name: cpu\n    threads: 1\n"
ANOTHER_VERSION = """\
import importlib.metadata as m
found = m.version
m.version = lambda name: "0.1.15" if name == "apache-tvm-ffi" else found(name)
"""


def missing_compiler_beforehand(directory: Path, name: str, program: str) -> str:
    """Writes the program where Python finds it before what is installed."""
    file = directory / "first" / name
    file.parent.mkdir(parents=True)
    file.write_text(program)
    return str(directory / "first")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.modules['tvm'] = None", "the module tvm is missing"),
        (ANOTHER_VERSION, "apache-tvm-ffi is 0.1.15, and only"),
    ],
    ids=["missing", "another version"],
)
def test_a_run_that_compiles_says_what_to_install(tmp_path: Path, program: str, said: str) -> None:
    first = missing_compiler_beforehand(tmp_path, "sitecustomize.py", program)
    workspace = Workspace(tmp_path / "w", AUTO)
    done = workspace.tunegate("run", PYTHONPATH=first, code=2)
    assert said in done.stderr
    assert "python -m pip install 'tunegate[tvm]'" in done.stderr
    assert not (workspace.root / ".tunegate" / "verdict.json").exists()


def test_a_run_that_does_not_compile_needs_no_compiler(tmp_path: Path) -> None:
    first = missing_compiler_beforehand(
        tmp_path, "sitecustomize.py", "import sys; sys.modules['tvm'] = None"
    )
    Workspace(tmp_path / "w", NOT_COMPILED).tunegate("plan", PYTHONPATH=first, code=0)


def test_a_compiler_that_dies_of_everything_is_the_machines_fault(tmp_path: Path) -> None:
    first = missing_compiler_beforehand(tmp_path, "tvm/__init__.py", "import os; os._exit(1)")
    done = Workspace(tmp_path / "w", AUTO).tunegate("plan", PYTHONPATH=first, code=4)
    assert "the compiler does not work on this machine" in done.stderr


def test_without_a_linker_nothing_is_compiled(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "bash", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    done = Workspace(tmp_path / "w", AUTO).tunegate("run", PATH=str(programs), code=4)
    assert "to link with" in done.stderr
