"""`tunegate demo`: three real pull requests against a throw-away repository."""

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import onnx
from onnx import helper, numpy_helper

from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import CandidateOutcome, Finding, Status, Verdict
from tunegate.cli.commands.gating import RunOptions
from tunegate.cli.commands.starting import DemoOptions
from tunegate.cli.handlers import run
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.shared_options import BudgetOptions, Common, ComparedRevisions
from tunegate.config import TargetConfig
from tunegate.errors import BUG, INCONCLUSIVE, PASS, UNFIT
from tunegate.models.light_models import seeded_light
from tunegate.report.accuracy import error_in_words
from tunegate.report.escape import yaml_text
from tunegate.report.sentences import tuning_words
from tunegate.runtimes.registry import installed_runtimes
from tunegate.system.git.process import GitProcess, new_repository
from tunegate.system.output.directory import opened_output
from tunegate.wording import compared_times, milliseconds

_MINUTES = (1.0, 0.5)
_QUICK_MINUTES = (0.5, 0.5)
"""Minutes of tuning for the first pull request, and for each later one."""
_MARGIN_PERCENT, _QUICK_MARGIN_PERCENT = 3, 10
"""A smaller difference of a one-millisecond model takes many launches to tell."""
_PAIRS, _QUICK_PAIRS = 12, 6
_A_CHOICE = 2
_ALONE = "Run the demo again while nothing else runs."


class Problem(msgspec.Struct, frozen=True):
    """The reason why an act failed, and its exit code."""

    text: str
    exit_code: int


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One pull request of the demo, and how it ended."""

    title: str
    verdict: Verdict
    problem: Problem | None
    report: str
    seconds: float


Judge = Callable[[Verdict], Problem | None]


class Played(msgspec.Struct, frozen=True):
    acts: tuple[Act, ...]


def run_demo(options: DemoOptions) -> int:
    """Plays the demo. Returns 0 if the three verdicts are as expected, 3 or 4 if the machine is too
    noisy or too slow; an unexplained verdict is a bug. A second run reuses the cache."""
    with opened_output(options.directory, "demo"):
        acts = _play_all(options)
    if options.common.as_json:
        write_json(Played(acts))
    else:
        _show(acts)
        for line in absent_lines(installed_runtimes().runtimes):
            write_line(line)
    return exit_code([act.problem for act in acts if act.problem is not None])


def _play_all(options: DemoOptions) -> tuple[Act, ...]:
    directory, is_quick = options.directory, options.quick
    first_minutes, later_minutes = _QUICK_MINUTES if is_quick else _MINUTES
    model = network(is_quick=is_quick)
    retrained_model = network(1, is_quick=is_quick)
    slowed_model = slow_network(is_quick=is_quick)
    policy = DemoPolicy(
        cache=directory / "cache",
        minutes=first_minutes,
        margin_percent=_QUICK_MARGIN_PERCENT if is_quick else _MARGIN_PERCENT,
        pairs=_QUICK_PAIRS if is_quick else _PAIRS,
        max_error_percent=options.max_error,
    )
    repository = create(directory / "repository", model, policy)
    first = _play("a", "a new model", directory, first_minutes, first_problem)
    branch(repository, "retrained")
    commit(repository, retrained_model, "Retrain")
    second = _play("b", "new weights, same graph", directory, later_minutes, second_problem)
    branch(repository, "wider-kernel")
    side = slowed_kernel(is_quick=is_quick)
    commit(repository, slowed_model, f"Try a {side}x{side} kernel in fire5")
    third = _play("c", "a much slower layer", directory, later_minutes, third_problem)
    return first, second, third


def exit_code(problems: Sequence[Problem]) -> int:
    """Returns the exit code of the problems. A machine problem explains those after it, so a bug
    counts only alone."""
    codes = {problem.exit_code for problem in problems}
    return next((code for code in (UNFIT, INCONCLUSIVE, BUG) if code in codes), PASS)


def _play(letter: str, title: str, directory: Path, minutes: float, judge: Judge) -> Act:
    sys.stderr.write(f"\n=== pull request {letter}: {title} ===\n")
    out = directory / f"pull-request-{letter}"
    began = time.monotonic()
    run.run(
        RunOptions(
            common=Common(repository=directory / "repository", out=out),
            revisions=ComparedRevisions(base=None if judge is first_problem else "main"),
            budget=BudgetOptions(given={"budget.minutes": minutes}),
        )
    )
    verdict = artifact_io.read(out / "verdict.json", Verdict)
    return Act(
        title=f"{letter}. {title}",
        verdict=verdict,
        problem=judge(verdict),
        report=str(out / "report.html"),
        seconds=time.monotonic() - began,
    )


def first_problem(verdict: Verdict) -> Problem | None:
    return _other_than(verdict, "new")


def second_problem(verdict: Verdict) -> Problem | None:
    """Returns the second act's problem: new weights must cost no trial, even if the first act left
    something to tune."""
    problem = _other_than(verdict, "pass")
    if problem is not None or verdict.tuning.trials == 0:
        return problem
    return Problem("needed trials", BUG)


def third_problem(verdict: Verdict) -> Problem | None:
    problem = _other_than(verdict, "fail")
    if problem is not None:
        return problem
    slower = [layer.name for layer in _only(verdict).differences]
    if any(SLOWED_LAYER in name for name in slower[:1]):
        return None
    text = f"should name {SLOWED_LAYER}, not {', '.join(slower[:1]) or 'nothing'}."
    named_later = any(SLOWED_LAYER in name for name in slower)
    busy = f"{text} Its operators were disturbed while they were timed. {_ALONE}"
    return Problem(busy, UNFIT) if named_later or not slower else Problem(text, BUG)


def _other_than(verdict: Verdict, expected_status: Status) -> Problem | None:
    """Returns what prevents the wanted status, None if the verdict has it."""
    status = _only(verdict).status
    if status == expected_status:
        return None
    match status:
        case "inconclusive":
            return Problem(f"this machine is too noisy to decide it. {_ALONE}", INCONCLUSIVE)
        case "invalid-env" | "no-baseline":
            return Problem(f"this machine was disturbed, or lacks something. {_ALONE}", UNFIT)
        case _:
            return Problem(f"should be {expected_status}, and is {status}.", BUG)


def _only(verdict: Verdict) -> Finding:
    (finding,) = verdict.findings
    return finding


def election_lines(outcomes: Sequence[CandidateOutcome]) -> Iterator[str]:
    """Yields a line per measured candidate, the shipped one first, and one per candidate that was
    not measured; none without a choice. An election's times differ from those of base and head, so
    they are shown in percent."""
    if len(outcomes) < _A_CHOICE:
        return
    ours = next((outcome.ms for outcome in outcomes if outcome.ships), None)
    for outcome in sorted(outcomes, key=lambda each: (not each.ships, each.ms or math.inf)):
        beside = (
            f"{_exact(outcome)}{_beside(outcome, ours)}"
            if outcome.ms is not None
            else outcome.reason
        )
        yield f"{'ships' if outcome.ships else '     '} {outcome.title}: {beside}"


def _exact(candidate: CandidateOutcome) -> str:
    if candidate.error is not None:
        return f"error {error_in_words(candidate.error)}"
    return "error not measured in this run" if candidate.has_unknown_error else "float32"


def _beside(candidate: CandidateOutcome, own_ms: float | None) -> str:
    """Returns how much faster the shipped candidate was, in the report's words."""
    if candidate.ships or not own_ms or candidate.ms is None:
        return ""
    return f"; what ships is {compared_times(own_ms, candidate.ms)}"


class _Runtime(Protocol):
    @property
    def title(self) -> str: ...
    def unsupported(self, target: TargetConfig) -> str: ...


def absent_lines(runtimes: Iterable[_Runtime]) -> Iterator[str]:
    """Yields a line for each missing runtime, with the package that it needs."""
    for runtime in runtimes:
        if reason := runtime.unsupported(TargetConfig(name="cpu")):
            yield f"{runtime.title} did not take part: it {reason}"


def _show(acts: tuple[Act, ...]) -> None:
    write_line("")
    for act in acts:
        finding = _only(act.verdict)
        write_line(f"{act.title}: {finding.status} (exit code {act.verdict.exit_code})")
        write_line(f"   {finding.reason}")
        if finding.base_ms is not None:
            base, head = milliseconds(finding.base_ms), milliseconds(finding.head_ms)
            write_line(f"   base {base}, head {head}")
        for line in election_lines(finding.runtimes):
            write_line(f"   {line}")
        if finding.differences and finding.status == "fail":
            write_line(f"   held by: {finding.differences[0].name}")
        write_line(f"   tuning: {tuning_words(act.verdict.tuning)}")
        write_line(f"   all of it took {act.seconds:.0f} s")
        write_line(f"   report: {act.report}")
        if act.problem:
            write_line(f"   NOT AS EXPECTED: {act.problem.text}")


# The demo's throw-away repository: a SqueezeNet, or one module of it, in three states.

DEMO_MODEL = Path("models/squeezenet.onnx")
SLOWED_LAYER = "fire5/expand3x3"
_KERNEL, _QUICK_KERNEL = 9, 5
_FIRST_OF_QUICK, _LAST_OF_QUICK = "fire5/squeeze1x1", "r31"
_IMAGE = (1, 256, 27, 27)
"""The shape of the fourth module's input: (N, C, H, W)."""
_OWN_SETTINGS = {
    "user.name": "tunegate demo",
    "user.email": "demo@tunegate.invalid",
    "core.hooksPath": "/dev/null",
    "commit.gpgSign": "false",
    # Files of the user that leave models out of commits, or send them to Git LFS.
    "core.excludesFile": "/dev/null",
    "core.attributesFile": "/dev/null",
}
_CONFIG = """\
models:
  - path: models/*.onnx
    accuracy: {accuracy}
targets:
  - name: cpu
    usd-per-hour: 0.34
cache:
  url: {cache}
budget:
  minutes: {minutes}
gate:
  margin-percent: {margin}
  seconds: 120
  pairs: {pairs}
"""


class DemoPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The repository's settings: its cache, minutes of tuning, the gate's margin, the block pairs
    per launch, and the error that the model may have (None: no budget)."""

    cache: Path
    minutes: float
    margin_percent: float
    pairs: int
    max_error_percent: float | None = None

    @property
    def accuracy(self) -> str:
        """The budget as the configuration writes it."""
        budget = self.max_error_percent
        return "same" if budget is None else f"{{max-error: {budget:g}}}"


def create(root: Path, model: onnx.ModelProto, policy: DemoPolicy) -> GitProcess:
    """Creates a repository on branch `main` with one commit of this model."""
    shutil.rmtree(root, ignore_errors=True)
    repository = new_repository(root)
    for name, value in _OWN_SETTINGS.items():
        repository.text("config", name, value)
    (root / "tunegate.yaml").write_text(
        _CONFIG.format(
            cache=yaml_text(str(policy.cache.resolve())),
            minutes=policy.minutes,
            margin=policy.margin_percent,
            pairs=policy.pairs,
            accuracy=policy.accuracy,
        )
    )
    commit(repository, model, "Add SqueezeNet")
    return repository


def commit(repository: GitProcess, model: onnx.ModelProto, message: str) -> str:
    file = repository.root / DEMO_MODEL
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, file)
    repository.text("add", "--all")
    repository.text("commit", "-q", "-m", message)
    return repository.text("rev-parse", "HEAD") or ""


def branch(repository: GitProcess, name: str) -> None:
    repository.text("checkout", "-q", "-B", name, "main")


def network(seed: int = 0, *, is_quick: bool = False) -> onnx.ModelProto:
    """Returns the network with weights of this seed; the quick one is a single module."""
    whole = seeded_light("squeezenet", seed)
    return _module_alone(whole) if is_quick else whole


def _module_alone(network: onnx.ModelProto) -> onnx.ModelProto:
    names = [node.name for node in network.graph.node]
    first, last = names.index(_FIRST_OF_QUICK), names.index(_LAST_OF_QUICK)
    nodes = network.graph.node[first : last + 1]
    read = {name for node in nodes for name in node.input}
    image = helper.make_tensor_value_info(nodes[0].input[0], onnx.TensorProto.FLOAT, _IMAGE)
    result = helper.make_tensor_value_info(nodes[-1].output[0], onnx.TensorProto.FLOAT, None)
    weights = [each for each in network.graph.initializer if each.name in read]
    graph = helper.make_graph(nodes, "a module of SqueezeNet", [image], [result], weights)
    model = helper.make_model(
        graph, ir_version=network.ir_version, opset_imports=list(network.opset_import)
    )
    return onnx.shape_inference.infer_shapes(model)


def slowed_kernel(*, is_quick: bool = False) -> int:
    """Returns the size of the slower kernel. In the quick network one layer is half of the time, so
    a smaller kernel is slow enough, and faster to measure."""
    return _QUICK_KERNEL if is_quick else _KERNEL


def slow_network(*, is_quick: bool = False) -> onnx.ModelProto:
    """Returns the network with one 3x3 convolution enlarged to `slowed_kernel`: the same shapes
    around it, but more work."""
    side = slowed_kernel(is_quick=is_quick)
    model = network(is_quick=is_quick)
    node = next(n for n in model.graph.node if n.name == SLOWED_LAYER)
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    out, channels = weight.dims[0], weight.dims[1]
    values = np.random.default_rng(2).standard_normal((out, channels, side, side))
    kernel = (values / np.sqrt(channels * side * side / 2)).astype(np.float32)
    weight.CopyFrom(numpy_helper.from_array(kernel, weight.name))
    attributes = [a for a in node.attribute if a.name not in {"kernel_shape", "pads"}]
    del node.attribute[:]
    node.attribute.extend(attributes)
    node.attribute.append(helper.make_attribute("kernel_shape", [side, side]))
    node.attribute.append(helper.make_attribute("pads", [side // 2] * 4))
    return model
