"""`tunegate init`: a first tunegate.yaml and workflow for the models found here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate import artifact_io
from tunegate.cli.commands.init import InitOptions
from tunegate.commands.standard_output import write_line
from tunegate.commands.starter_files import starter_config, starter_workflow
from tunegate.edges.git.installed_commit import installed_commit
from tunegate.edges.models.finder import FoundModel, find_models
from tunegate.edges.output.owned_directory import refuse_links
from tunegate.errors import PASS, ConfigError
from tunegate.input_shapes import is_symbol
from tunegate.render.escape import visible

_WORKFLOW = Path(".github/workflows/tunegate.yml")
_LONGEST_COMMAND = 4000


def run(options: InitOptions) -> int:
    """Writes both files or none."""
    settings = options.settings
    root = settings.repository
    models = find_models(root, with_guesses=True)
    if not models:
        message = f"{root.resolve()}: no .onnx file that git tracks or would add. Put one there."
        raise ConfigError(message)
    config = settings.config or root / "tunegate.yaml"
    installed = installed_commit()
    files = {
        config: starter_config(models, installed),
        root / _WORKFLOW: starter_workflow(installed),
    }
    _write(files, force=options.force)
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    write_line(f"{config}: {count}")
    for model in models:
        write_line(f"  {visible(model.path)}: {visible(_found(model))}")
    pinned = (installed.release or f"commit {installed.commit}") if installed else ""
    write_line(
        f"{root / _WORKFLOW}: runs tunegate on every pull request, "
        + (f"pinned to {pinned}" if pinned else "once you put the commit of a release into it")
    )
    _write_next_steps(config, models)
    return PASS


def _found(model: FoundModel) -> str:
    """What is known of a model, in a line."""
    known = model.note or _guessed(model) or "every size is in the model"
    return known if model.is_committed else f"{known}; not committed yet"


def _guessed(model: FoundModel) -> str:
    sizes = {
        guess.symbol if is_symbol(guess.symbol) else f"{guess.input}[{guess.axis}]": guess.size
        for guess in model.guesses
    }
    said = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return f"guessed {said}" if said else ""


def _write_next_steps(config: Path, models: Sequence[FoundModel]) -> None:
    new = [shlex.quote(model.path) for model in models if not model.is_committed]
    add = " ".join(["git add", shlex.quote(config.name), _WORKFLOW.as_posix(), *new])
    write_line("Next: look over the guessed sizes, then")
    write_line(f'  {visible(add, _LONGEST_COMMAND)} && git commit -m "Gate model latency"')
    write_line("  tunegate run")


def _write(files: Mapping[Path, str], *, force: bool) -> None:
    for path in files:
        refuse_links(path.parent)
        if os.path.lexists(path) and not force:
            message = f"{path}: exists already. Move it away, or overwrite it with --force."
            raise ConfigError(message)
    for path, text in files.items():
        artifact_io.write_text(path, text)
