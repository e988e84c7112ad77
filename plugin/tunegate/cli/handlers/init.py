"""`tunegate init`: a first tunegate.yaml and workflow for the models found here."""

import os
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.inputs import Constant, DrawnInput, InputRule, Integers, Uniform
from tunegate.artifacts.measurements import Gpu
from tunegate.cli.commands.starting import InitOptions
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.errors import PASS, ConfigError, OutputError
from tunegate.models.finder import FoundModel, find_models
from tunegate.models.likely_sizes import is_generated
from tunegate.models.size_trials import milliseconds_in_words, try_models
from tunegate.models.sizes import GuessedSize
from tunegate.report.escape import visible, yaml_text
from tunegate.report.report_tables import values_in_words
from tunegate.review.config_file import CONFIG_FILE
from tunegate.review.globs import VERSION, literal, matches
from tunegate.review.input_shapes import is_symbol
from tunegate.system.git.installed_commit import (
    InstalledCommit,
    installed_commit,
    public_address,
    repository_of,
)
from tunegate.system.git.repository import GitRepository
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.output.owned_directory import refuse_links
from tunegate.wording import page_address, plural

_WORKFLOW = Path(".github/workflows/tunegate.yml")
_OF_GITLAB = ".gitlab-ci.yml"
_LONGEST_COMMAND = 4000
_LONGEST_LINE = 300


class Initialized(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `init --json`: the written files, relative to the repository's root if they are
    inside, and the models that they gate. `gpu` is the device that they are tuned on, '' for the
    CPU."""

    schema: Literal[1] = 1
    files: tuple[str, ...]
    models: tuple[FoundModel, ...]
    gpu: str = ""


def run(options: InitOptions) -> int:
    """Writes both files or none; a repository with GitLab's pipeline gets no workflow."""
    settings = options.settings
    repository = GitRepository(settings.repository)
    root = repository.root
    models = find_models(root, with_guesses=True)
    if not models:
        message = f"{root.resolve()}: no .onnx file that git tracks or would add. Put one there."
        raise ConfigError(message)
    models = try_models(root, models)
    config = settings.config or root / CONFIG_FILE
    package = installed_commit()
    branch = repository.default_branch_name() or "main"
    gpu = next(iter(visible_gpus()), None)
    files = {config: starter_config(models, package, gpu)}
    if has_workflow := not (root / _OF_GITLAB).is_file() or (root / ".github").is_dir():
        files[root / _WORKFLOW] = starter_workflow(package, branch)
    _write(files, force=options.force)
    if settings.as_json:
        paths = tuple(_display_path(file, root) for file in files)
        write_json(Initialized(files=paths, models=tuple(models), gpu=gpu.name if gpu else ""))
        return PASS
    write_line(f"Wrote {_display_path(config, root)}. It gates {_coverage_text(models)}:")
    for model in models:
        write_line(f"  {visible(model.path)}: {visible(_describe_model(model))}")
    if gpu is not None:
        card = visible(gpu.name)
        write_line(f"  They are tuned and gated on {card}. For the CPU, see targets there.")
    if any(model.guesses for model in models):
        write_line("  Where a guessed size is not the one you deploy with, correct it there.")
    if has_workflow:
        write_line(
            f"Wrote {_WORKFLOW}. It gates each pull request and each push to {visible(branch)}, "
            "and tunes at night what is left."
        )
        write_line(f"  {_pin_text(package)}")
    else:
        write_line(f"The job to put into {_OF_GITLAB}: {page_address('how-to/gitlab')}")
    _write_next_steps(root, list(files), models)
    return PASS


def _display_path(file: Path, root: Path) -> str:
    inside = file.absolute().is_relative_to(root)
    return visible(os.path.relpath(file, root) if inside else str(file))


def _coverage_text(models: Sequence[FoundModel]) -> str:
    globs = " and ".join(starter_globs([model.path for model in models]))
    later = f", and every later one in {visible(globs)}" if globs else ""
    return plural(len(models), "model") + later


def _pin_text(package: InstalledCommit | None) -> str:
    if package is None:
        return "It can start once you put the commit of a release into it."
    return f"It installs tunegate {package.release or f'at commit {package.commit[:12]}'}."


def _describe_model(model: FoundModel) -> str:
    """Returns a model's description in one line."""
    settings = ", ".join(f"{name} {_value_text(rule)}" for name, rule in model.trial.rules.items())
    facts = (
        model.note or _guesses_text(model) or "no dynamic sizes",
        f"values: {settings}" if settings else "",
        _duration_text(model),
        model.trial.note,
        "" if model.is_committed else "not committed yet",
    )
    return "; ".join(filter(None, facts))


def _duration_text(model: FoundModel) -> str:
    seconds = model.trial.seconds
    return f"runs in {milliseconds_in_words(seconds)}" if seconds and model.guesses else ""


def _guesses_text(model: FoundModel) -> str:
    sizes = {
        guess.symbol if is_symbol(guess.symbol) else f"{guess.input}[{guess.axis}]": guess.size
        for guess in model.guesses
    }
    text = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return f"dynamic sizes, guessed: {text}" if text else ""


def _write_next_steps(root: Path, files: Sequence[Path], models: Sequence[FoundModel]) -> None:
    new = [model.path for model in models if not model.is_committed]
    own = [_display_path(each, root) for each in files if each.absolute().is_relative_to(root)]
    add = shlex.join(["git", "add", "--", *own, *new])
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
    new = [path for path in files if not os.path.lexists(path)]
    try:
        for path, text in files.items():
            artifact_io.write_bytes(path, text.encode(), "Make it one that may be written.")
    except OutputError:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise


# The globs that `tunegate init` writes, so that later models are gated too.

_ENDING = ".onnx"
_NAME_OF_SERVER = "model.onnx"
_OF_SERVER = re.compile(rf"(.+)/[0-9]+/{re.escape(_NAME_OF_SERVER)}")


def starter_globs(paths: Sequence[str]) -> tuple[str, ...]:
    """Returns one glob for the models of each top-level directory, in order of their paths: for
    that directory, for its numbered versions, or for everything below the deepest one they
    share."""
    places: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path.endswith(_ENDING):
            places.setdefault(path.partition("/")[0] if "/" in path else "", []).append(path)
    return tuple(_numbered_glob(in_folder) or _glob(in_folder) for in_folder in places.values())


def _numbered_glob(paths: Sequence[str]) -> str:
    """Returns the glob with which a new version is compared with the one before it, '' unless all
    models lie as servers of models keep them."""
    versions = [match for path in paths if (match := _OF_SERVER.fullmatch(path))]
    families = {match[1] for match in versions}
    places = {posixpath.dirname(family) for family in families}
    if len(versions) < len(paths) or len(places) > 1:
        return ""
    family = literal(posixpath.basename(families.pop())) if len(families) == 1 else "*"
    return posixpath.join(literal(places.pop()), family, VERSION, _NAME_OF_SERVER)


def _glob(paths: Sequence[str]) -> str:
    directories = {posixpath.dirname(path) for path in paths}
    parent = posixpath.commonpath(directories)
    pattern = f"*{_ENDING}" if directories == {parent} else f"**/*{_ENDING}"
    return posixpath.join(literal(parent), pattern)


# The sizes that `tunegate init` writes: one per symbol, with the reason.

_SIZES_HEAD = """\

# The sizes of dynamic dimensions, by symbol, for all models. Those that are guessed: put what you
# deploy with. An entry of models may have its own.
dims:
"""


def shared_sizes(models: Sequence[FoundModel]) -> dict[str, GuessedSize]:
    """Returns the symbols with one size in every model that has them."""
    guesses_of_symbols: dict[str, list[GuessedSize]] = {}
    for guess in (guess for model in models for guess in model.guesses):
        if _is_written(guess) and not is_generated(guess.symbol):
            guesses_of_symbols.setdefault(guess.symbol, []).append(guess)
    return {
        symbol: guesses[0]
        for symbol, guesses in sorted(guesses_of_symbols.items())
        if len({guess.size for guess in guesses}) == 1
    }


def shared_text(dims: Mapping[str, GuessedSize]) -> str:
    """Returns the key `dims` of the file, '' if there is nothing to share."""
    if not dims:
        return ""
    return _SIZES_HEAD + "".join(f"{line}\n" for line in _dims(dims, "  "))


def entry_lines(model: FoundModel, dims: Mapping[str, GuessedSize]) -> Iterator[str]:
    """Yields the keys `dims` and `inputs` of an entry."""
    own = {
        guess.symbol: guess
        for guess in model.guesses
        if _is_written(guess) and guess.symbol not in dims
    }
    if own:
        yield "    dims:"
        yield from _dims(own, "      ")
    inputs = [*_inputs(model)]
    if inputs:
        yield "    inputs:"
        yield from inputs


def _is_written(guess: GuessedSize) -> bool:
    """Returns whether the file states the size: a sum follows from other sizes, whatever they
    become."""
    return is_symbol(guess.symbol) and not guess.is_sum


def _dims(sizes: Mapping[str, GuessedSize], indent: str) -> Iterator[str]:
    for symbol, guess in sizes.items():
        yield f"{_yaml_key(symbol, indent)}: {guess.size}  # guessed: {visible(guess.why)}"


def _inputs(model: FoundModel) -> Iterator[str]:
    """Yields the inputs with nameless dimensions, or with values of their own."""
    for value in model.inputs or ():
        key = _yaml_key(value.name, "      ")
        guesses = [guess for guess in model.guesses if guess.input == value.name]
        reasons = [guess.why for guess in guesses if not is_symbol(guess.symbol)]
        rule = model.trial.rules.get(value.name)
        shape = f"[{', '.join(map(str, _shape(value, guesses)))}]"
        values = "" if rule is None else f"values: {_value_yaml(rule)}"
        if reasons or not value.is_ranked:
            why = "; ".join(dict.fromkeys(reasons)) or "the model does not say how many dimensions"
            text = f"{{shape: {shape}, {values}}}" if values else shape
            more = f"; {rule.why}" if rule is not None else ""
            yield f"{key}: {text}  # guessed: {visible(f'{why}{more}')}"
        elif rule is not None:
            yield f"{key}: {{{values}}}  # guessed: {visible(rule.why)}"


def _draw_comment(value: DrawnInput, model: FoundModel) -> str:
    """Returns what an input is drawn from, if a reason is known and the file does not state it."""
    why = value.rule.why if value.rule is not None else ""
    if not why or value.name in model.trial.rules:
        return ""
    return f"drawn: {value.name} {values_in_words(value)} ({why})"


def _value_yaml(rule: InputRule) -> str:
    """Returns a rule as a configuration writes it."""
    match rule.values:
        case Constant(value=value):
            return f"{{cases: [{value!r}]}}"
        case Integers(low=low, high=high) | Uniform(low=low, high=high):
            return f"{{low: {low!r}, high: {high!r}}}"
        case _:
            raise TypeError(type(rule.values).__name__)


def _value_text(rule: InputRule) -> str:
    values = rule.values
    if isinstance(values, Constant):
        return str(values.value)
    return f"{values.low} to {values.high}" if isinstance(values, Integers | Uniform) else ""


def _shape(value: ModelInput, guesses: Sequence[GuessedSize]) -> list[int]:
    sizes = {guess.axis: guess.size for guess in guesses}
    if not value.is_ranked:
        return [size for _, size in sorted(sizes.items())] or [1]
    return [sizes[axis] if size is None else size for axis, size in enumerate(value.dimensions)]


_LONGEST_KEY = 1000
"""YAML looks for the colon after a key in 1,024 characters."""


def _yaml_key(name: str, indent: str) -> str:
    """Returns a name, which may hold anything and be as long as an expression of sizes, as a
    key."""
    key = yaml_text(name)
    return f"{indent}{key}" if len(key) <= _LONGEST_KEY else f"{indent}? {key}\n{indent}"


# The text of the files that `tunegate init` writes.

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
    package: InstalledCommit | None = None,
    gpu: Gpu | None = None,
) -> str:
    """Returns the configuration, for a GPU if there is one. Editors complete it by the schema of
    the installed commit."""
    dims = shared_sizes(models)
    sizes = shared_text(dims)
    return (
        _schema_line(package)
        + _HEAD.format(settings=_address(package, "blob", _SETTINGS))
        + (f"{sizes}\n" if sizes else "")
        + _MODELS
        + "".join(_entries(models, dims))
        + (_CPU if gpu is None else _gpu_target(gpu))
        + _TAIL
    )


def _gpu_target(gpu: Gpu) -> str:
    arch = f"sm_{gpu.compute_capability.replace('.', '')}"
    return _GPU.format(arch=arch, name=yaml_text(gpu.name))


def _entries(models: Sequence[FoundModel], dims: Mapping[str, GuessedSize]) -> Iterator[str]:
    """Yields an entry for each model with something to state, then the globs for the rest."""
    globs = starter_globs([model.path for model in models])
    for model in models:
        lines = [*_model_lines(model, dims)]
        if lines or not any(matches(glob, model.path) for glob in globs):
            yield "\n".join((f"  - path: {yaml_text(literal(model.path))}", *lines)) + "\n"
    yield from (f"  - path: {yaml_text(glob)}\n" for glob in globs)


def _model_lines(model: FoundModel, dims: Mapping[str, GuessedSize]) -> Iterator[str]:
    lines = [*entry_lines(model, dims)]
    if model.note:
        yield f"    # {visible(model.note, _LONGEST_LINE)}"
    if lines or model.trial.note:
        yield from (f"    # tried: {visible(line, _LONGEST_LINE)}" for line in model.trial.tried)
    if lines:
        comments = filter(None, (_draw_comment(each, model) for each in model.trial.inputs))
        yield from (f"    # {visible(line, _LONGEST_LINE)}" for line in comments)
    if model.trial.note:
        yield f"    # {visible(model.trial.note, _LONGEST_LINE)}"
    yield from lines


def _schema_line(package: InstalledCommit | None) -> str:
    if package is None:
        return ""
    return f"# yaml-language-server: $schema={_address(package, 'raw', _SCHEMA)}\n"


def _address(package: InstalledCommit | None, how: str, path: str) -> str:
    """Returns the address of a file at the installed commit, or else at the newest one."""
    source = package.source if package else public_address()
    return f"{source}/{how}/{package.commit if package else 'main'}/{path}"


def starter_workflow(package: InstalledCommit | None, branch: str = "main") -> str:
    """Returns the workflow for this default branch, pinned to the installed commit. Without one the
    commit stays zero, and the workflow cannot start."""
    text = (resources.files("tunegate.cli.handlers") / "workflow.yml").read_text(encoding="utf-8")
    text = text.replace("branches: [main]", f"branches: [{yaml_text(branch)}]")
    text = text.replace("'refs/heads/main'", _expression(f"refs/heads/{branch}"))
    if package is None:
        return text
    (source,) = _SOURCE.findall(text)
    note = package.release or "the commit that wrote this file"
    return (
        text.replace(source, package.source)
        .replace(f"uses: {repository_of(source)}@", f"uses: {package.repository}@")
        .replace(_PUT_HERE, f"@{package.commit} # {note}")
        .replace(f"@{_NO_COMMIT}", f"@{package.commit}")
    )


def _expression(text: str) -> str:
    """Returns text as a string of a workflow expression."""
    return "'" + text.replace("'", "''") + "'"
