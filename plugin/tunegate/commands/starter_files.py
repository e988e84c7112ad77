"""The text of the files that `tunegate init` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources

from tunegate.edges.models.finder import FoundModel, OpenInput

_HEAD = """\
# What tunegate watches, where it runs, and what it may spend.
# Every setting: docs/configuration.md. What is in effect and why: tunegate doctor
models:
"""

_TAIL = """\

# One entry per kind of machine you deploy on. cpu and arch "native" mean the runner's own.
targets:
  - name: cpu
    kind: llvm                # or cuda
    runner: [self-hosted]     # labels of the CI runner
    # threads: 4              # default: every core the job may use
    # usd-per-hour: 0.34      # needed for budget.usd

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


def starter_config(models: Sequence[FoundModel]) -> str:
    return _HEAD + "".join(_entry(model) for model in models) + _TAIL


def starter_workflow() -> str:
    return (resources.files("tunegate.commands") / "workflow.yml").read_text(encoding="utf-8")


def _entry(model: FoundModel) -> str:
    lines = [f"  - path: {_quoted(model.path)}"]
    if model.note:
        lines.append(f"    # {model.note}")
    if model.open_inputs:
        lines.append("    # Put the sizes you deploy with where a name stands, and uncomment:")
        lines.append("    # inputs:")
        lines.extend(f"    #   {_shape(opened)}" for opened in model.open_inputs)
    return "\n".join(lines) + "\n"


def _shape(opened: OpenInput) -> str:
    sizes = ", ".join(str(size).replace("\n", " ") for size in opened.dimensions)
    return f"{_quoted(opened.name)}: [{sizes}]"


def _quoted(text: str) -> str:
    """YAML takes JSON strings; a path may hold anything."""
    return json.dumps(text, ensure_ascii=False)
