"""The installed CI hosts, ours among them, by the entry-point group `tunegate.ci`, and the host
without a CI. The value of each entry point is a `CiHost` class."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from tunegate.ci import protocol
from tunegate.ci.host_files import log_annotations, write_host_file, write_host_json
from tunegate.ci.protocol import AskedRevisions, CiHost, JobEvent, JobReport, Links
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.known_extras import refuse_missing, refuse_missing_ci
from tunegate_cache.installed_plugins import Plugin, PluginError, find_plugins, load_plugin

HOST_GROUP = "tunegate.ci"
_AUTO = "auto"
_Answer = TypeVar("_Answer")
NO_CI = "none"
"""The host of a process that is no CI job."""


def opened_host(name: str, environment: Mapping[str, str]) -> CiHost:
    """Returns the host of this name, or for `auto` of this process's CI. Raises ConfigError, or
    EnvironmentUnfitError for an unusable package."""
    plugins = find_plugins(HOST_GROUP)
    if name == _AUTO:
        name = _name_here(plugins, environment)
    if name not in plugins:
        refuse_missing("CI", name)
        raise ConfigError(f'"{name}" is no CI that is known. Known are {", ".join(plugins)}.')
    return _ask_host(plugins[name], lambda host: host(environment))


def run_address(environment: Mapping[str, str]) -> str:
    """Returns the page of this job, '' outside of a job or if it cannot be found."""
    try:
        return opened_host(_AUTO, environment).links(Path()).run
    except Exception:  # noqa: BLE001 -- a third party's host must not cost a device
        return ""


def job_event(environment: Mapping[str, str]) -> JobEvent | None:
    """Returns the event of this job, None if it cannot be read."""
    try:
        return opened_host(_AUTO, environment).event(AskedRevisions())
    except Exception:  # noqa: BLE001 -- a third party's host must not cost a verdict
        return None


def _name_here(plugins: Mapping[str, Plugin], environment: Mapping[str, str]) -> str:
    here = [
        name
        for name, plugin in plugins.items()
        if _ask_host(plugin, lambda host: host.is_here(environment))
    ]
    if len(here) > 1:
        message = f"this looks like a job of {' and of '.join(here)}. Name one of them with --ci."
        raise ConfigError(message)
    if not here:
        refuse_missing_ci(environment, plugins)
    return next(iter(here), NO_CI)


def _ask_host(plugin: Plugin, question: Callable[[type[CiHost]], _Answer]) -> _Answer:
    """Asks a host, which may be a third party's. Raises EnvironmentUnfitError if it fails."""
    try:
        return question(cast("type[CiHost]", load_plugin(plugin)))
    except PluginError as error:
        raise EnvironmentUnfitError(f"{error}. Install it again, or remove it.") from error
    except Exception as error:
        message = f'{plugin.offered_by[0]}: "{plugin.value}" is no CI host that can be used'
        raise EnvironmentUnfitError(f"{message} ({type(error).__name__}). Remove it.") from error


# The CI that a command is a job of, which its command line may leave open.


def command_host(
    name: str, environment: Mapping[str, str], *, is_named: bool, is_json: bool
) -> CiHost | None:
    """Returns the host of this name. If the command line names none, returns that of the CI this is
    a job of, None outside of all CIs; output for a program then stays as it is. Raises as
    `opened_host` does."""
    if not is_named and _name_here(find_plugins(HOST_GROUP), environment) == NO_CI:
        return None
    host = opened_host(name, environment)
    return UntoldHost(host) if is_json and not is_named else host


# A host that prints nothing on standard output, which a program reads.


class UntoldHost:
    """Another host without its instructions to the CI: annotations are lines on standard error."""

    def __init__(self, host: CiHost) -> None:
        self._host = host

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns False: it wraps another host."""
        return False

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the other host's event."""
        return self._host.event(asked)

    def links(self, out: Path) -> Links:
        """Returns the other host's links."""
        return self._host.links(out)

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: only the program's output is printed."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Reports annotations in the log."""
        log_annotations(report.annotations)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Comments as the other host does."""
        self._host.comment(event, name, markdown, updates_only=updates_only)


# The host without a CI: results for a job become files beside the report.

_ADDRESS = "BUILD_URL"


class NoCiHost:
    """The host of a person at a shell, and of an unknown CI."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    @staticmethod
    def is_here(environment: Mapping[str, str]) -> bool:
        """Returns False: it is chosen if no other host is."""
        return False

    def event(self, asked: AskedRevisions) -> JobEvent:
        """Returns the usual revisions, and the cache that the configuration names."""
        return JobEvent(revisions=protocol.Usual(), zone="")

    def links(self, out: Path) -> Links:
        """Returns the link in a variable that many CIs set."""
        return Links(run=self._environment.get(_ADDRESS, ""))

    def literal_output(self) -> AbstractContextManager[None]:
        """Changes nothing: nobody reads commands from the output."""
        return nullcontext()

    def tell(self, report: JobReport) -> None:
        """Reports annotations in the log, and outputs, annotations and the summary in files."""
        log_annotations(report.annotations)
        if report.directory is None:
            return
        write_host_json(report.directory, "outputs.json", dict(report.outputs))
        annotations = [msgspec.structs.asdict(annotation) for annotation in report.annotations]
        write_host_json(report.directory, "annotations.json", annotations)
        write_host_file(report.directory, "summary.md", report.summary)

    def comment(
        self, event: JobEvent, name: str, markdown: str, *, updates_only: bool = False
    ) -> None:
        """Does nothing: there is nothing to comment on."""
        raise protocol.HostRefusedError("no CI says which pull request this is")


_: type[CiHost] = NoCiHost
