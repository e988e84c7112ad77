"""The text of the files that `tunegate init` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from tunegate.artifacts.gpus import Gpu
from tunegate.commands.starting.starter_globs import starter_globs
from tunegate.commands.starting.starter_sizes import entry_lines, quoted, shared_sizes, shared_text
from tunegate.edges.git.installed_commit import InstalledCommit, public_address, repository_of
from tunegate.edges.models.finder import FoundModel
from tunegate.edges.models.sizes.guessed_sizes import GuessedSize
from tunegate.globs import literal, matches

_HEAD = """\
# What tunegate watches, where it runs, and what it may spend.
# Every setting: {settings}. What is in effect and why: tunegate doctor
"""

_MODELS = """\
# The first entry that matches a model counts. A glob takes tomorrow's models too.
models:
"""

_CPU = """\

# One entry per kind of machine you deploy on. cpu and arch "native" mean the runner's own.
targets:
  - name: cpu
    kind: llvm                # or cuda
    runner: [self-hosted]     # labels of the CI runner
    # threads: 4              # default: every usable core but one
    # usd-per-hour: 0.34      # needed for budget.usd
"""

_GPU = """\

# One entry per kind of machine you deploy on. This one is the GPU of the machine that init ran on.
# Where you deploy on the CPU, write instead:
#   - name: cpu
#     kind: llvm
#     runner: [self-hosted]
targets:
  - name: gpu
    kind: cuda
    arch: {arch}
    expect-gpu: {name}
    runner: [self-hosted]     # labels of the CI runner: add the one that names this GPU
    # usd-per-hour: 3.50      # needed for budget.usd
"""

_TAIL = """\

# Tuning results, shared by every team that reads this place.
cache:
  url: ~/.cache/tunegate      # or s3://bucket/prefix
  # endpoint-url: https://storage.example.com    # an S3 that is not Amazon's

# Tuning stops at the first of these.
budget:
  minutes: 10
  # usd: 0.50
  # trials: 2000

# A model that gets slower than this fails the pull request.
gate:
  margin-percent: 3
"""

_SCHEMA, _SETTINGS = "docs/schemas/tunegate.schema.json", "docs/configuration.md"
_NO_COMMIT = "0" * 40
_PUT_HERE = f"@{_NO_COMMIT} # put the commit of a release here"
_SOURCE = re.compile(rf"git\+(\S+)@{_NO_COMMIT}")


def starter_config(
    models: Sequence[FoundModel],
    installed: InstalledCommit | None = None,
    gpu: Gpu | None = None,
) -> str:
    """The configuration, for a GPU where there is one. Editors complete it by the schema of the
    commit that is installed."""
    shared = shared_sizes(models)
    sizes = shared_text(shared)
    return (
        _schema_line(installed)
        + _HEAD.format(settings=_address(installed, "blob", _SETTINGS))
        + (f"{sizes}\n" if sizes else "")
        + _MODELS
        + "".join(_entries(models, shared))
        + (_CPU if gpu is None else _gpu_target(gpu))
        + _TAIL
    )


def _gpu_target(gpu: Gpu) -> str:
    arch = f"sm_{gpu.compute_capability.replace('.', '')}"
    return _GPU.format(arch=arch, name=quoted(gpu.name))


def _entries(models: Sequence[FoundModel], shared: Mapping[str, GuessedSize]) -> Iterator[str]:
    """An entry for each model of which there is something to say, then the globs for the rest."""
    globs = starter_globs([model.path for model in models])
    for model in models:
        said = [*_said(model, shared)]
        if said or not any(matches(glob, model.path) for glob in globs):
            yield "\n".join((f"  - path: {quoted(literal(model.path))}", *said)) + "\n"
    yield from (f"  - path: {quoted(glob)}\n" for glob in globs)


def _said(model: FoundModel, shared: Mapping[str, GuessedSize]) -> Iterator[str]:
    if model.note:
        yield f"    # {model.note}"
    yield from entry_lines(model, shared)


def _schema_line(installed: InstalledCommit | None) -> str:
    if installed is None:
        return ""
    return f"# yaml-language-server: $schema={_address(installed, 'raw', _SCHEMA)}\n"


def _address(installed: InstalledCommit | None, how: str, path: str) -> str:
    """The address of a file at the commit that is installed, or of the newest one."""
    source = installed.source if installed else public_address()
    return f"{source}/{how}/{installed.commit if installed else 'main'}/{path}"


def starter_workflow(installed: InstalledCommit | None, branch: str = "main") -> str:
    """The workflow for this default branch, pinned to what is installed here. Without it the
    commits stay zero, and such a workflow cannot start."""
    text = (resources.files("tunegate.commands") / "workflow.yml").read_text(encoding="utf-8")
    text = text.replace("branches: [main]", f"branches: [{quoted(branch)}]")
    text = text.replace("'refs/heads/main'", _expression(f"refs/heads/{branch}"))
    if installed is None:
        return text
    (source,) = _SOURCE.findall(text)
    note = installed.release or "the commit that wrote this file"
    return (
        text.replace(source, installed.source)
        .replace(f"uses: {repository_of(source)}@", f"uses: {installed.repository}@")
        .replace(_PUT_HERE, f"@{installed.commit} # {note}")
        .replace(f"@{_NO_COMMIT}", f"@{installed.commit}")
    )


def _expression(text: str) -> str:
    """A string of a workflow's expression."""
    return "'" + text.replace("'", "''") + "'"
