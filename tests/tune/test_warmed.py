from __future__ import annotations

import msgspec

from tests.support.measured_cells import MODEL, TARGET, make_build, make_builds
from tests.support.tuning_tasks import (
    DEVICE,
    exact,
    key_of,
    make_outcome,
    make_record,
    make_task,
    transfer,
)
from tunegate.artifacts.builds import ErrorEstimate, RefusedCandidate, RuntimeChoice
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate.artifacts.tasks import ResolvedTask, TaskUse
from tunegate.artifacts.verdicts import WarmedModel
from tunegate.tune.outcomes import known_after, shippings, warmed_models
from tunegate_cache.format.records import Miss


def outcome_of(*tasks: TaskOutcome) -> TuningOutcome:
    return TuningOutcome(
        shard=0,
        target="cpu",
        tasks=tasks,
        spent=Cost(seconds=1.0),
        device=DEVICE,
        stopped="seconds",
    )


RESOLVED = (
    ResolvedTask(make_task("known"), exact("known")),
    ResolvedTask(make_task("tuned"), Miss("absent")),
    ResolvedTask(make_task("begun"), transfer()),
    ResolvedTask(make_task("small"), Miss("absent")),
    ResolvedTask(make_task("left"), Miss("absent")),
)
DEFAULT = msgspec.structs.replace(make_record("small", times=3), template="", decisions=())
OUTCOME = outcome_of(
    make_outcome("tuned", records=(make_record("tuned"),)),
    make_outcome("begun", records=(make_record("begun", times=3),)),
    make_outcome("small", records=(DEFAULT,), trials=0),
    make_outcome("left", records=transfer().records),
)


def test_what_is_confirmed_or_has_only_a_default_schedule_is_known() -> None:
    known = known_after(RESOLVED, [OUTCOME])
    assert known == {key_of(name) for name in ("known", "tuned", "small")}


def test_every_model_counts_its_own_tasks() -> None:
    other = TaskUse(model="n.onnx", side="head", weight=2, name="conv")
    shared = msgspec.structs.replace(RESOLVED[1].task, uses=(*RESOLVED[1].task.uses, other))
    resolved = (RESOLVED[0], ResolvedTask(shared, Miss("absent")), *RESOLVED[2:])
    assert warmed_models(resolved, [OUTCOME]) == (
        WarmedModel(model="m.onnx", target="cpu", tasks=5, known_before=1, known=3, measured=1),
        WarmedModel(model="n.onnx", target="cpu", tasks=1, known_before=0, known=1),
    )


def test_a_model_ships_as_it_was_built_now_and_else_as_it_was_elected() -> None:
    error = ErrorEstimate(what="max-error", center=0.8, low=0.7, high=1.1, samples=74)
    head = msgspec.structs.replace(make_build(), title="Any (int8)", error_estimate=(error,))
    built = make_builds(None, head)
    int8 = CandidateBuild(runtime="any", title="Any (int8)", settings={"precision": "int8"})
    alone = CandidateBuild(runtime="any", title="Any")
    now, earlier, only, nothing = ((MODEL, TARGET), ("e", "cpu"), ("o", "cpu"), ("n", "cpu"))
    elected = {earlier: int8, only: alone}
    found = shippings((now, earlier, only, nothing), (built,), elected, {earlier})
    assert [(each.model, each.title) for each in found] == [
        (MODEL, "Any (int8)"),
        ("e", "Any (int8)"),
        ("o", "Any"),
    ]
    assert found[0].estimates == (error,)
    assert [each.has_unknown_error for each in found] == [False, True, False]
    assert [each.is_remembered for each in found] == [False, True, False]


def test_it_is_told_which_candidate_died_and_what_the_others_gave_up() -> None:
    refused = (
        RefusedCandidate(
            candidate="tvm-whole",
            title="TVM (whole)",
            reason="the compiler failed (CUDA error 700)",
        ),
        RefusedCandidate(candidate="odd", title="Odd", reason="no LSTM", is_lasting=True),
    )
    head = msgspec.structs.replace(
        make_build(),
        title="TVM",
        choice=RuntimeChoice(refused=refused),
        without_picks="the compiler failed (CUDA error 716)",
    )
    (found,) = shippings([(MODEL, TARGET)], [make_builds(None, head)], {}, ())
    assert found.trouble == (
        "built without transferred schedules, with them: the compiler failed (CUDA error 716)",
        "TVM (whole): the compiler failed (CUDA error 700)",
    )


def test_a_model_that_nothing_runs_ships_with_nothing() -> None:
    (found,) = shippings([(MODEL, TARGET)], [make_builds(None, make_build(error="odd"))], {}, ())
    assert (found.title, found.reason) == ("", "odd")
