"""A stage of the action as a command line of tunegate. Pure."""

from __future__ import annotations

from tunegate.artifacts.changes import Revisions
from tunegate_action.event import Event
from tunegate_action.inputs import Inputs

_COMMANDS = {"all": "run", "plan": "plan", "tune": "tune", "gate": "gate"}


def command_line(inputs: Inputs, event: Event, revisions: Revisions | None) -> list[str]:
    """`--name=value` throughout, so that no value can be taken for an option.

    A stage gets only what it obeys: the plan settles the budget for the later stages, which refuse a
    plan of other revisions, and the gate asks no cache.
    """
    line = [_COMMANDS[inputs.stage], f"--out={inputs.out}"]
    if inputs.config:
        line.append(f"--config={inputs.config}")
    line += _compared(inputs, revisions)
    if inputs.stage == "tune":
        line.append(f"--shard={inputs.shard}")
    if inputs.stage == "plan" and inputs.shards:
        line.append(f"--shards={inputs.shards}")
    if inputs.stage in {"all", "plan"}:
        line += inputs.budget
    if inputs.stage != "gate":
        line += [*inputs.cache, *_trust(event)]
    return line


def _compared(inputs: Inputs, revisions: Revisions | None) -> list[str]:
    """A release before is found by the command, as its configuration says what tags are called."""
    if revisions is not None:
        base = [] if revisions.base is None else [f"--base={revisions.base}"]
        policy = [f"--policy={revisions.policy}"] if revisions.policy else []
        return [f"--head={revisions.head}", *base, *policy]
    chooses = inputs.since_release and inputs.stage in {"all", "plan"}
    head = [f"--head={inputs.head}"] if inputs.head else []
    return ["--since-release", *head] if chooses else head


def _trust(event: Event) -> list[str]:
    """Whoever may write no zone of the cache only reads, a fork for one."""
    return ["--cache-mode=ro"] if event.zone is None else [f"--zone={event.zone}"]
