"""A workflow file as GitHub runs it: a fresh checkout of depth 1 in each job, and nothing between
the jobs but outputs and the artifacts that its steps upload and download."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import yaml

from tests.e2e.action_runner import Event, run_action
from tests.support.git_repository import Checkout, actions_checkout

Conclusion = Literal["success", "failure", "cancelled", "skipped"]
Matrix = Mapping[str, Any]
_STATUS_FUNCTION = re.compile(r"\b(always|success|failure|cancelled)\s*\(")


@dataclass
class Leg:
    """One run of a job, for one entry of its matrix. `actions` are the results of the action."""

    matrix: Matrix
    workspace: Path
    conclusion: Conclusion = "success"
    actions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def log(self) -> str:
        return "".join(each["log"] for each in self.actions)


@dataclass
class Job:
    result: Conclusion
    outputs: Mapping[str, str]
    legs: Sequence[Leg]

    @property
    def log(self) -> str:
        return "".join(leg.log for leg in self.legs)


@dataclass(frozen=True)
class Trouble:
    """The trouble of a workflow. Runners are `lost` (nothing of them comes back), and legs time out
    (`cancelled`: only steps with always() run), by job and shard; `is_cancelled` is a run that
    somebody cancels."""

    lost: Collection[tuple[str, int]] = ()
    cancelled: Collection[tuple[str, int]] = ()
    is_cancelled: bool = False


NO_TROUBLE = Trouble()


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """`origin` is the repository on the server, `commit` what the event is about. One that
    `is_private` is not reached after the checkout, since no credentials are kept: then the
    checkout is as deep as the file says. `between` is called before each job with its name and
    the directory of all artifacts."""

    workflow: Path
    origin: Checkout
    commit: str
    event: Event
    directory: Path
    node_modules: Path
    trouble: Trouble = NO_TROUBLE
    is_private: bool = False
    between: Callable[[str, Path], None] = lambda job, artifacts: None
    attempt: int = 1

    def run(self) -> dict[str, Job]:
        """All jobs, each after those that it needs."""
        written = yaml.safe_load(self.workflow.read_text())["jobs"]
        done: dict[str, Job] = {}
        while len(done) < len(written):
            ready = next(
                name
                for name in written
                if name not in done
                if set(_needs(written[name])) <= {*done}
            )
            self.between(ready, self.artifacts)
            done[ready] = self._job(ready, written[ready], done)
        return done

    @property
    def artifacts(self) -> Path:
        return self.directory / "artifacts"

    def _job(self, name: str, job: Mapping[str, Any], done: Mapping[str, Job]) -> Job:
        needed = {other: done[other] for other in _needs(job)}
        context = {
            "github": {
                "event_name": self.event.name,
                "ref": "refs/pull/1/merge",
                "run_attempt": self.attempt,
            },
            "needs": {o: {"result": j.result, "outputs": j.outputs} for o, j in needed.items()},
        }
        status = _status([each.result for each in needed.values()])
        if not self._is_true(
            job.get("if", ""), context, "cancelled" if self.trouble.is_cancelled else status
        ):
            return Job("skipped", {}, ())
        legs = []
        outputs: Mapping[str, str] = {}
        for number, matrix in enumerate(self._matrix(job, context)):
            workspace = self.directory / f"{name}-{number}"
            leg, outputs = self._leg(name, job, {**context, "matrix": matrix}, workspace)
            legs.append(leg)
        conclusions = [leg.conclusion for leg in legs]
        troubles: Sequence[Conclusion] = ("failure", "cancelled")
        worst: Conclusion = next((each for each in troubles if each in conclusions), "success")
        return Job(worst, outputs, legs)

    def _matrix(self, job: Mapping[str, Any], context: Mapping[str, Any]) -> Sequence[Matrix]:
        written = job.get("strategy", {}).get("matrix")
        if written is None:
            return [{}]
        inner = re.fullmatch(r"\$\{\{(.*)\}\}", written)
        assert inner, written
        (found,) = self._expanded([f"${{{{ toJSON({inner[1]}) }}}}"], context)
        legs: list[Matrix] = json.loads(found)["include"]
        assert legs, "GitHub refuses a matrix without a value"
        return legs

    def _leg(
        self, name: str, job: Mapping[str, Any], context: Mapping[str, Any], directory: Path
    ) -> tuple[Leg, Mapping[str, str]]:
        leg = Leg(context["matrix"], directory / "workspace")
        here = (name, leg.matrix.get("shard", -1))
        if here in self.trouble.lost:
            leg.conclusion = "failure"
            return leg, {}
        if here in self.trouble.cancelled:
            leg.conclusion = "cancelled"
        assert all(self._expanded([str(job["runs-on"])], context)), "no runner is named"
        temp = directory / "temp"
        temp.mkdir(parents=True)
        steps: dict[str, Any] = {}
        for number, step in enumerate(job["steps"]):
            now = {**context, "steps": steps}
            if not self._is_true(step.get("if", ""), now, leg.conclusion):
                continue
            outputs = self._step(step, now, leg, temp)
            steps[step.get("id", f"__{number}")] = {"outputs": outputs}
        texts = job.get("outputs", {})
        found = self._expanded(list(texts.values()), {**context, "steps": steps})
        return leg, dict(zip(texts, found, strict=True))

    def _step(
        self, step: Mapping[str, Any], context: Mapping[str, Any], leg: Leg, temp: Path
    ) -> Mapping[str, str]:
        """The outputs of the step. One that fails is the end of its leg."""
        at = leg.workspace
        options = self._mapped(step.get("with", {}), context)
        match step.get("uses", "").partition("@")[0]:
            case "actions/checkout":
                self._check_out(at, options)
            case "actions/upload-artifact":
                _upload(at, options, self.artifacts)
            case "actions/download-artifact":
                _download(at, options, self.artifacts)
            case "tunegate/tunegate":
                return self._action(options, leg, temp)
            case "":
                variables = self._mapped(step.get("env", {}), context)
                leg.conclusion = _script(step["run"], variables, temp) or leg.conclusion
            case other:
                raise AssertionError(f"no step is known by the name {other}")
        return {}

    def _check_out(self, at: Path, options: Mapping[str, str]) -> None:
        checkout = actions_checkout(self.origin, at, self.commit)
        if not self.is_private:
            return
        if options.get("fetch-depth") == "0":
            checkout.git("fetch", "-q", "--unshallow", "origin", self.commit)
        checkout.git("remote", "set-url", "origin", (at / "refused").as_uri())

    def _action(self, inputs: Mapping[str, str], leg: Leg, temp: Path) -> Mapping[str, str]:
        result = run_action(
            self.event, inputs, workspace=leg.workspace, temp=temp, node_modules=self.node_modules
        )
        leg.actions.append(result)
        if result["exitCode"]:
            leg.conclusion = "failure"
        outputs: Mapping[str, str] = result["outputs"]
        return outputs

    def _mapped(self, texts: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, str]:
        found = self._expanded([_plain(text) for text in texts.values()], context)
        return dict(zip(texts, found, strict=True))

    def _is_true(self, condition: str, context: Mapping[str, Any], status: str) -> bool:
        """An `if:`. Without a function that asks for the status, all must have gone well before."""
        bare = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", str(condition).strip()).strip() or "success()"
        asked = bare if _STATUS_FUNCTION.search(bare) else f"success() && ({bare})"
        (found,) = self._expanded([f"${{{{ ({asked}) && 'yes' || '' }}}}"], context, status)
        return found == "yes"

    def _expanded(
        self, texts: Sequence[str], context: Mapping[str, Any], status: str = "success"
    ) -> list[str]:
        if not any("${{" in text for text in texts):
            return list(texts)
        done = subprocess.run(
            ["node", "evaluate.mjs"],
            input=json.dumps({"texts": texts, "context": context, "status": status}),
            cwd=self.node_modules,
            capture_output=True,
            text=True,
            check=True,
        )
        found: list[str] = json.loads(done.stdout)
        return found


def _needs(job: Mapping[str, Any]) -> Sequence[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else needs


def _status(results: Sequence[Conclusion]) -> str:
    """Only a job that somebody cancelled by hand makes the whole run a cancelled one."""
    return "success" if all(result == "success" for result in results) else "failure"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _script(text: str, variables: Mapping[str, str], temp: Path) -> Conclusion | None:
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=temp,
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
    )
    return "failure" if done.returncode else None


def _upload(workspace: Path, options: Mapping[str, str], artifacts: Path) -> None:
    """Nothing to upload is a warning, as `if-no-files-found` says by default."""
    found = sorted(_matching(workspace, options["path"].split()))
    hidden = [each for each in found if any(part.startswith(".") for part in each.parts)]
    if options.get("include-hidden-files") != "true":
        found = [each for each in found if each not in hidden]
    if not found:
        return
    into = artifacts / options["name"]
    if into.exists():
        assert options.get("overwrite") == "true", f"GitHub has an artifact {into.name} already"
        shutil.rmtree(into)
    into.mkdir(parents=True)
    least = os.path.commonpath([each.parent for each in found])
    for each in found:
        target = into / each.relative_to(least)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(workspace / each, target)


def _matching(workspace: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        for each in workspace.glob(pattern):
            if each.is_file():
                yield each.relative_to(workspace)


def _download(workspace: Path, options: Mapping[str, str], artifacts: Path) -> None:
    """A name that is not there is an error; a pattern that matches nothing is none."""
    into = workspace / options["path"]
    into.mkdir(parents=True, exist_ok=True)
    if "name" in options:
        shutil.copytree(artifacts / options["name"], into, dirs_exist_ok=True)
        return
    assert options["merge-multiple"] == "true", "each artifact would get a directory of its own"
    for artifact in sorted(artifacts.iterdir()):
        if fnmatch(artifact.name, options["pattern"]):
            shutil.copytree(artifact, into, dirs_exist_ok=True)
