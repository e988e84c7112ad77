"""The accuracy budget of each model: which candidates are tried under it, and which builds it
refuses."""

import msgspec

from tunegate.artifacts.builds import Build, Cell
from tunegate.artifacts.candidates import FLOAT32, CandidateBuild, Candidates
from tunegate.artifacts.changes import ModelPath
from tunegate.config import Accuracy, AccuracyConfig, Config
from tunegate.decide.error_budget import estimate_errors, limits_of, outside, samples_needed
from tunegate.errors import MeasurementError
from tunegate.ports import BuildJob, CaseScorer
from tunegate.review.model_settings import entry_for, values_for


def is_tried(config: Config, cell: Cell, candidate: CandidateBuild, candidates: Candidates) -> bool:
    """Returns whether to build a candidate. Other precisions need a budget, unless the target has
    nothing else; its check then says so. A calibrated candidate needs values for inputs."""
    if candidate.is_calibrated and not values_for(config, cell.model):
        return False
    if candidate.precision == FLOAT32 or _accuracy(config, cell.model) != "same":
        return True
    return all(each.precision != FLOAT32 for each in candidates[cell.target])


def lacks_values(config: Config, model: ModelPath, candidate: CandidateBuild) -> str:
    """Returns why a candidate that the budget would allow is not built, '' if it is."""
    if not candidate.is_calibrated or _accuracy(config, model) == "same":
        return ""
    if values_for(config, model):
        return ""
    return (
        f"{model}: {candidate.title} is calibrated on values that you give, and there are none: "
        "write them under inputs: in tunegate.yaml."
    )


def samples_for(config: Config, model: ModelPath, candidate: CandidateBuild) -> int:
    """Returns the number of inputs to estimate a build's error on, 0 if it must compute the
    same."""
    budget = _budget(config, model, candidate)
    return 0 if budget is None else samples_needed(budget)


def is_scored(config: Config, model: ModelPath, candidate: CandidateBuild) -> bool:
    """Returns whether a command of the user scores the build."""
    budget = _budget(config, model, candidate)
    return budget is not None and budget.metric_command is not None


def with_scores(
    build: Build, job: BuildJob, config: Config, candidate: CandidateBuild, scorer: CaseScorer
) -> Build:
    """Returns the build with the scores of the user's command on its cases, or with an error if
    there are none."""
    model = job.model.path
    budget = _budget(config, model, candidate)
    metric = budget.metric_command if budget is not None else None
    if metric is None or job.cases is None or build.sampled is None:
        return build
    try:
        scores = scorer.scores(metric.run, job.cases)
    except MeasurementError as error:
        problem = f"{model}: {candidate.title} has no metric: {error}."
        return msgspec.structs.replace(build, error=problem, sampled=None)
    return msgspec.structs.replace(
        build, sampled=msgspec.structs.replace(build.sampled, scores=scores)
    )


def held_to_budget(
    build: Build, config: Config, model: ModelPath, candidate: CandidateBuild
) -> Build:
    """Returns the build with its estimates, and with an error unless it is shown inside its budget.
    The directory stays named, so that it is removed with the losers."""
    budget = _budget(config, model, candidate)
    build = msgspec.structs.replace(build, limits=limits_of(_accuracy(config, model)))
    if budget is None or build.error is not None:
        return msgspec.structs.replace(build, sampled=None)
    if build.sampled is None:
        return msgspec.structs.replace(build, error=_missing_estimate(build, model, candidate))
    estimates = estimate_errors(build.sampled, budget)
    reason = outside(estimates)
    error = f"{model}: {candidate.title} {reason}." if reason else None
    return msgspec.structs.replace(build, sampled=None, error_estimate=estimates, error=error)


def _missing_estimate(build: Build, model: ModelPath, candidate: CandidateBuild) -> str | None:
    """Returns the error of a runtime that estimates none: it computes float32, or does not ship."""
    if build.check is not None and build.check.passed:
        return None
    return f"{model}: {candidate.title} says nothing of its error."


def _budget(config: Config, model: ModelPath, candidate: CandidateBuild) -> AccuracyConfig | None:
    accuracy = _accuracy(config, model)
    return None if accuracy == "same" or candidate.precision == FLOAT32 else accuracy


def _accuracy(config: Config, model: ModelPath) -> Accuracy:
    entry = entry_for(config, model)
    return "same" if entry is None else entry.accuracy
