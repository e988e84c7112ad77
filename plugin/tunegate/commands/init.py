"""`tunegate init`: a first tunegate.yaml and workflow for the models found here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate import artifact_io
from tunegate.cli.commands.init import InitOptions
from tunegate.commands.standard_output import write_line
from tunegate.commands.starting.starter_files import starter_config, starter_workflow
from tunegate.commands.starting.starter_globs import starter_globs
from tunegate.edges.config.file import CONFIG_FILE
from tunegate.edges.git.installed_commit import InstalledCommit, installed_commit
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.models.finder import FoundModel, find_models
from tunegate.edges.nvidia.gpus import visible_gpus
from tunegate.edges.output.owned_directory import refuse_links
from tunegate.errors import PASS, ConfigError
from tunegate.input_shapes import is_symbol
from tunegate.plurals import plural
from tunegate.render.escape import visible

_WORKFLOW = Path(".github/workflows/tunegate.yml")
_LONGEST_COMMAND = 4000


def run(options: InitOptions) -> int:
    """Writes both files or none."""
    settings = options.settings
    repository = GitRepository(settings.repository)
    root = repository.root
    models = find_models(root, with_guesses=True)
    if not models:
        message = f"{root.resolve()}: no .onnx file that git tracks or would add. Put one there."
        raise ConfigError(message)
    config = settings.config or root / CONFIG_FILE
    installed = installed_commit()
    branch = repository.default_branch_name() or "main"
    gpu = next(iter(visible_gpus()), None)
    files = {
        config: starter_config(models, installed, gpu),
        root / _WORKFLOW: starter_workflow(installed, branch),
    }
    _write(files, force=options.force)
    write_line(f"Wrote {_shown(config, root)}. It gates {_covered(models)}:")
    for model in models:
        write_line(f"  {visible(model.path)}: {visible(_found(model))}")
    if gpu is not None:
        card = visible(gpu.name)
        write_line(f"  They are tuned and gated on {card}. For the CPU, see targets there.")
    if any(model.guesses for model in models):
        write_line("  Where a guessed size is not the one you deploy with, correct it there.")
    write_line(
        f"Wrote {_WORKFLOW}. It gates each pull request and each push to {visible(branch)}, and "
        "tunes at night what is left."
    )
    write_line(f"  {_pinned(installed)}")
    _write_next_steps(root, config, models)
    return PASS


def _shown(file: Path, root: Path) -> str:
    inside = file.absolute().is_relative_to(root)
    return visible(os.path.relpath(file, root) if inside else str(file))


def _covered(models: Sequence[FoundModel]) -> str:
    globs = " and ".join(starter_globs([model.path for model in models]))
    later = f", and every later one in {visible(globs)}" if globs else ""
    return plural(len(models), "model") + later


def _pinned(installed: InstalledCommit | None) -> str:
    if installed is None:
        return "It can start once you put the commit of a release into it."
    return f"It installs tunegate {installed.release or f'at commit {installed.commit[:12]}'}."


def _found(model: FoundModel) -> str:
    """Returns a model's description, in a line."""
    known = model.note or _guessed(model) or "no dynamic sizes"
    return known if model.is_committed else f"{known}; not committed yet"


def _guessed(model: FoundModel) -> str:
    sizes = {
        guess.symbol if is_symbol(guess.symbol) else f"{guess.input}[{guess.axis}]": guess.size
        for guess in model.guesses
    }
    said = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return f"dynamic sizes, guessed: {said}" if said else ""


def _write_next_steps(root: Path, config: Path, models: Sequence[FoundModel]) -> None:
    new = [model.path for model in models if not model.is_committed]
    own = [_shown(config, root)] if config.absolute().is_relative_to(root) else []
    add = shlex.join(["git", "add", "--", *own, _WORKFLOW.as_posix(), *new])
    write_line(f"Next{_place(root)}:")
    write_line(f'  {visible(add, _LONGEST_COMMAND)} && git commit -m "Gate model latency"')
    write_line("  tunegate doctor              # is all there that a run needs?")
    write_line("  tunegate warm --minutes 2    # tunes them, before a pull request has to")


def _place(root: Path) -> str:
    return "" if root.resolve() == Path.cwd() else f", in {visible(str(root))}"


def _write(files: Mapping[Path, str], *, force: bool) -> None:
    for path in files:
        refuse_links(path.parent)
        if os.path.lexists(path) and not force:
            message = f"{path}: exists already. Move it away, or overwrite it with --force."
            raise ConfigError(message)
    for path, text in files.items():
        artifact_io.write_text(path, text)
