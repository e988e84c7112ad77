"""Reads a study's file as a StudyConfig, and its models. Every mistake is one line: file, key,
problem, remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tunegate.config import ProfileConfig
from tunegate.errors import ConfigError, ConfigKey
from tunegate.review.config_problems import KeyProblem, problem_of
from tunegate.system.strict_yaml import YamlProblemError, read_yaml
from tunegate.wording import did_you_mean, page_address
from tunegate_study.design.study_config import (
    GIVEN_FILE,
    StudiedModel,
    StudyAxes,
    StudyBudget,
    StudyConfig,
    StudyModel,
)

_MAX_BYTES = 1 << 20


def load_study(path: Path) -> StudyConfig:
    """Reads the file. Raises ConfigError."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"{path}: larger than 1 MiB. Name the file of a study.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(
            f"{path}: cannot be read ({said}). See {page_address('study')}"
        ) from error
    return parse_study(text, str(path))


def parse_study(text: str, where: str) -> StudyConfig:
    """Reads a study's text; `where` names it in messages. Raises ConfigError."""
    try:
        content = read_yaml(text)
    except YamlProblemError as error:
        raise _error(where, KeyProblem("", str(error)), error.line) from error
    for problem in _unknown_keys(content):
        raise _error(where, problem)
    try:
        config = msgspec.convert(content, StudyConfig)
    except msgspec.ValidationError as error:
        raise _error(where, problem_of(error, content, StudyConfig)) from error
    for problem in _problems(config):
        raise _error(where, problem)
    return config


def studied_models(config: StudyConfig) -> tuple[StudiedModel, ...]:
    """Returns the levels of the model axis."""
    found = []
    for entry in config.models:
        model = StudyModel(path=entry) if isinstance(entry, str) else entry
        name = model.name or Path(model.path).stem
        profiles = model.profiles or {"": ProfileConfig()}
        for profile, adds in profiles.items():
            found.append(
                StudiedModel(
                    name=f"{name}@{profile}" if profile else name,
                    files={GIVEN_FILE: model.path, **model.variants},
                    dims={**model.dims, **adds.dims},
                    inputs={**model.inputs, **adds.inputs},
                )
            )
    return tuple(found)


def _unknown_keys(content: object) -> Iterator[KeyProblem]:
    """Yields the keys that no section has; what is no mapping is found later."""
    yield from _unknown_in(content, "", StudyConfig)
    if not isinstance(content, dict):
        return
    yield from _unknown_in(content.get("axes"), "axes", StudyAxes)
    yield from _unknown_in(content.get("budget"), "budget", StudyBudget)
    models = content.get("models")
    for number, entry in enumerate(models if isinstance(models, list) else ()):
        yield from _unknown_in(entry, f"models[{number}]", StudyModel)


def _unknown_in(section: object, path: str, kind: type[msgspec.Struct]) -> Iterator[KeyProblem]:
    own = [field.encode_name for field in msgspec.structs.fields(kind)]
    what = "unknown axis" if kind is StudyAxes else "unknown key"
    for word in section if isinstance(section, dict) else ():
        if isinstance(word, str) and word not in own:
            hint = did_you_mean(word, own, f"Known: {', '.join(own)}.")
            key = f"{path}.{word}" if path else word
            yield KeyProblem(key, f"{what} {key}. {hint}")


def _problems(config: StudyConfig) -> Iterator[KeyProblem]:
    models = studied_models(config)
    yield from _repeated_levels("models", [model.name for model in models], "Give one a name.")
    for name, levels in msgspec.structs.asdict(config.axes).items():
        yield from _repeated_levels(f"axes.{name}", levels, "Remove one.")
        if not levels and name in ("precision", "variant", "layout", "algorithm", "tuning"):
            yield KeyProblem(f"axes.{name}", f"axes.{name}: no level. Write one, or remove it.")
    yield from _repeated_levels(
        "targets", [target.name for target in config.targets], "Rename one."
    )
    yield from _unknown("axes.target", config.axes.target, [t.name for t in config.targets])
    variants = {GIVEN_FILE, *(variant for model in models for variant in model.files)}
    yield from _unknown("axes.variant", config.axes.variant, sorted(variants))


def _repeated_levels(key: str, levels: Sequence[object], advice: str) -> Iterator[KeyProblem]:
    for level, count in Counter(map(str, levels)).items():
        if count > 1:
            yield KeyProblem(key, f"{key}: {level} is given {count} times. {advice}")


def _unknown(key: str, levels: Iterable[str], known_levels: Sequence[str]) -> Iterator[KeyProblem]:
    for level in levels:
        if level not in known_levels:
            hint = did_you_mean(level, known_levels, f"Known: {', '.join(known_levels)}.")
            yield KeyProblem(key, f'{key}: unknown "{level}". {hint}')


def _error(where: str, problem: KeyProblem, line: int = 0) -> ConfigError:
    text = " ".join(problem.text.splitlines())
    return ConfigError(f"{where}: {text}", ConfigKey(where, problem.key, line))
