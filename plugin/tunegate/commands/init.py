"""`tunegate init`: a first tunegate.yaml and workflow for the models found here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tunegate import artifact_io
from tunegate.cli.commands.init import InitOptions
from tunegate.commands.standard_output import write_line
from tunegate.commands.starter_files import starter_config, starter_workflow
from tunegate.edges.models.finder import find_models
from tunegate.edges.output.owned_directory import refuse_links
from tunegate.errors import PASS, ConfigError

_WORKFLOW = Path(".github/workflows/tunegate.yml")


def run(options: InitOptions) -> int:
    """Writes both files or none."""
    settings = options.settings
    root = settings.repository
    models = find_models(root)
    if not models:
        message = (
            f"{root.resolve()}: git tracks no .onnx file here. Run git add on your models first."
        )
        raise ConfigError(message)
    config = settings.config or root / "tunegate.yaml"
    _write(
        {config: starter_config(models), root / _WORKFLOW: starter_workflow()}, force=options.force
    )
    write_line(f"{config}: {len(models)} models")
    write_line(f"{root / _WORKFLOW}: runs tunegate on every pull request")
    write_line("Next: look through both, then tunegate doctor.")
    return PASS


def _write(files: Mapping[Path, str], *, force: bool) -> None:
    for path in files:
        refuse_links(path.parent)
        if os.path.lexists(path) and not force:
            message = f"{path}: exists already. Move it away, or overwrite it with --force."
            raise ConfigError(message)
    for path, text in files.items():
        artifact_io.write_text(path, text)
