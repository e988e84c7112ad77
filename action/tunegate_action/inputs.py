"""Turns the workflow's inputs, which are environment variables, into a job's request."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import msgspec

from tunegate.ci.protocol import PLANNING, AskedRevisions, JobRequest, StepName
from tunegate.config import BudgetConfig, CacheConfig, GateConfig
from tunegate.config_key import keys_of
from tunegate.errors import ConfigError
from tunegate.review.config_file import CONFIG_FILE
from tunegate.settings import CommentWhen
from tunegate_action.debug_log import is_debug

_STEPS: Mapping[str, StepName] = {
    "all": "run",
    "plan": "plan",
    "tune": "tune",
    "gate": "gate",
    "measure": "measure",
    "verdict": "verdict",
}
_COMMENT_STAGE = "comment"
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}
_SHARDS = {"SHARDS": "--shards", "MEASURE_SHARDS": "--measure-shards"}


def input_flags(section: type[msgspec.Struct], place: str) -> Mapping[str, str]:
    """Returns the options of a section that the action has inputs for, by variable name."""
    declared = (each.key for each in keys_of(section, place))
    flags = [key.flag for key in declared if key.is_input]
    return {flag.removeprefix("--").replace("-", "_").upper(): flag for flag in flags}


_BUDGET = input_flags(BudgetConfig, "budget")
_GATE = input_flags(GateConfig, "gate")
_CACHE = input_flags(CacheConfig, "cache")


class _Inputs:
    """The variables of the action's inputs, by input name."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        return self._environment.get(f"TUNEGATE_{name}", "").strip()

    def checkout(self) -> Path:
        return Path(self.text("PATH"))

    def config(self) -> Path:
        return self.checkout() / (self.text("CONFIG") or CONFIG_FILE)

    def options(self, option_names: Mapping[str, str]) -> list[str]:
        """Returns the options as `--name=value`, so that no value can be taken for an option."""
        return [
            f"{option}={self.text(name)}"
            for name, option in option_names.items()
            if self.text(name)
        ]

    def is_true(self, name: str, default: str) -> bool:
        """Returns a boolean input. Raises ConfigError naming it."""
        text = self.text(name) or default
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        input_name = name.lower().replace("_", "-")
        raise ConfigError(f'input {input_name}: "{text}" is neither true nor false.')


class ForkReport(msgspec.Struct, frozen=True, kw_only=True):
    """The request of stage `comment`: a report on the files of a fork's run."""

    directory: Path
    comment: CommentWhen


def read_fork_report(environment: Mapping[str, str]) -> ForkReport | None:
    """Returns the request, None for every other stage. Raises ConfigError naming the input."""
    inputs = _Inputs(environment)
    if inputs.text("STAGE") != _COMMENT_STAGE:
        return None
    return ForkReport(directory=_out(inputs), comment=_comment(inputs))


def checkout_of(environment: Mapping[str, str]) -> Path:
    """Returns the directory of the checkout, relative to the workspace."""
    return _Inputs(environment).checkout()


def config_of(environment: Mapping[str, str]) -> Path:
    """Returns the checkout's configuration, relative to the workspace."""
    return _Inputs(environment).config()


def read_request(environment: Mapping[str, str]) -> JobRequest:
    """Returns the job's request. Raises ConfigError naming the input."""
    inputs = _Inputs(environment)
    step = _step(inputs.text("STAGE") or "all")
    return JobRequest(
        words=(*_words(step, inputs), *(["--verbose"] if is_debug(environment) else [])),
        step=step,
        out=_out(inputs),
        repository=checkout_of(environment),
        config=config_of(environment),
        asked=AskedRevisions(
            base=inputs.text("BASE"),
            head=inputs.text("HEAD"),
            since_release=inputs.is_true("SINCE_RELEASE", "false"),
        ),
        comment=_comment(inputs),
    )


def _comment(inputs: _Inputs) -> CommentWhen:
    """Returns when to comment; words of earlier releases are reported as old. Raises
    ConfigError."""
    text = inputs.text("COMMENT").lower() or "on-change"
    choices: tuple[CommentWhen, ...] = get_args(CommentWhen)
    if text in choices:
        return text
    if text not in _TRUE | _FALSE:
        message = f'input comment: "{text}" is not one of {", ".join(choices)}.'
        raise ConfigError(message)
    advice: CommentWhen = "always" if text in _TRUE else "never"
    sys.stdout.write(
        f"::warning title=tunegate::input comment: {text} is old. Write {advice}, or leave it out: "
        "the default is on-change.\n"
    )
    return advice


def _out(inputs: _Inputs) -> Path:
    return Path(inputs.text("OUT") or ".tunegate")


def _words(step: StepName, inputs: _Inputs) -> list[str]:
    """Returns only the words that a step obeys: the plan settles the budget for the later ones."""
    words = [step, f"--out={_out(inputs)}"]
    if inputs.text("PATH"):
        words.append(f"--repository={inputs.checkout()}")
    if inputs.text("CONFIG"):
        words.append(f"--config={inputs.config()}")
    if step in {"tune", "measure"}:
        words.append(f"--shard={inputs.text('SHARD') or '0'}")
    if step == "plan":
        words += inputs.options(_SHARDS)
    if step in PLANNING:
        words += inputs.options(_BUDGET)
    if step != "tune":
        words += inputs.options(_GATE)
    return [*words, *inputs.options(_CACHE)]


def _step(stage: str) -> StepName:
    if stage not in _STEPS:
        step_names = ", ".join((*_STEPS, _COMMENT_STAGE))
        message = f'input stage: "{stage}" is not one of {step_names}.'
        raise ConfigError(message)
    return _STEPS[stage]
