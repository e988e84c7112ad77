"""A build that computes other numbers with the channels of images last: made again with channels
first, before its model is given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.finished_build import refusal_of_build


def in_other_layout(
    jobs: Sequence[BuildJob],
    builds: Sequence[Build],
    build: Callable[[Sequence[BuildJob]], Sequence[Build]],
) -> list[Build]:
    """Returns the builds, those that were linked and are wrong in the other layout, where they are
    right in it. One that died says nothing of its layout: the other side might have had it."""
    made = list(builds)
    wrong = [n for n, each in enumerate(builds) if _is_wrong(each) and _has_other(jobs[n].model)]
    if not wrong:
        return made
    again = build([_with_channels_first(jobs[n]) for n in wrong])
    for n, each in zip(wrong, again, strict=True):
        if each.error is None:
            made[n] = msgspec.structs.replace(each, without_channels_last=builds[n].error or "")
    return made


def refusal_of_tuning(job: ModelJob, tried: Build | None) -> str:
    """Returns why a model is not tuned that was tried as this build, if at all; '' where it is. Its
    tasks are those of the preferred layout."""
    if tried is None or not tried.without_channels_last:
        return "" if tried is None else refusal_of_build(tried)
    return (
        f"{job.path}: it is right with channels first alone, and was opened with channels "
        "last. Set targets[].layout: nchw to have it tuned."
    )


def _is_wrong(build: Build) -> bool:
    return build.error is not None and bool(build.key) and not build.crashed


def _has_other(job: ModelJob) -> bool:
    return job.target.kind == "llvm" and job.target.layout == "auto"


def _with_channels_first(job: BuildJob) -> BuildJob:
    target = msgspec.structs.replace(job.model.target, layout="nchw")
    model = msgspec.structs.replace(job.model, target=target)
    return msgspec.structs.replace(job, model=model, is_followed=False)
