"""One artifact as two builds: what runs it is decided by the environment of each side."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, unbuilt
from tunegate.digests import digest_of_document
from tunegate.edges.bench.sides import Sides
from tunegate.edges.environments.runtime_environment import RuntimeEnvironment
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.runtime import Runtime


class NoEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why a side has no environment. It is `broken` where that may be another time
    otherwise: a package that could not be had, and not one that is refused."""

    reason: str
    broken: bool = False


SideEnvironment = RuntimeEnvironment | NoEnvironment | None
"""The environment of a side; None where there is nothing that asks for one."""


def built_under(
    runtime: Runtime,
    model: ModelJob,
    places: Sides[Path],
    environments: Sides[SideEnvironment],
    builder: SavingBuilder,
) -> Sides[Build | None]:
    """Builds the artifact once, with the runtime that is installed beside tunegate. `places` are
    the directories of the sides."""
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    job = BuildJob(
        model=model,
        records={},
        sources={},
        directory=places.base,
        settings=runtime.variants(model.target)[""],
    )
    (build,) = builder.build([job])
    if build.error is None:
        shutil.copytree(places.base, places.head)
    base, head = (
        _side(runtime, build, place, environment)
        for place, environment in zip(places, environments, strict=True)
    )
    return Sides(base, head)


def located(build: Build | None, out: Path) -> Build | None:
    """The build with a directory that is relative to `--out`, as reports have it."""
    if build is None or not build.directory:
        return build
    return msgspec.structs.replace(build, directory=str(Path(build.directory).relative_to(out)))


def _side(
    runtime: Runtime, build: Build, place: Path, environment: SideEnvironment
) -> Build | None:
    if environment is None:
        return None
    if isinstance(environment, NoEnvironment):
        return unbuilt(environment.reason, crashed=environment.broken)
    decides = [build.key, str(environment.directory), dict(environment.packages)]
    return msgspec.structs.replace(
        build,
        key=digest_of_document(decides),
        directory="" if build.error else str(place),
        title=f"{runtime.title} {environment.version}",
    )
