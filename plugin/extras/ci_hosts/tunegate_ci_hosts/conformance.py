"""The contract of `CiHost` as executable rules, for the tests of a host's author. Each rule is
checked outside of any job, so a host answers without a network."""

import inspect
import io
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import msgspec

from tunegate.ci import protocol
from tunegate.ci.host_files import PREFIX
from tunegate.errors import ConfigError

SECRET = "a-secret-that-no-text-shows"  # noqa: S105 -- no secret of anybody's
"""The value for each variable that holds a token."""
_HOSTILE = "x\n::error::planted\r\n\x1b[0Ksection_start:1:a\r\x1b[0K%0A/merge \u2028 <b>"
_BASE, _HEAD = "a" * 40, "b" * 40
_REQUEST = protocol.JobEvent(revisions=protocol.Usual(), pull_request=7)
Tokens = Mapping[str, str]


class HostRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of the contract. `problem` returns what is wrong with a class of hosts, given the
    variables that hold its tokens; '' if the rule is kept."""

    name: str
    problem: Callable[[type[protocol.CiHost], Tokens], str]


def _methods(host: type[protocol.CiHost], tokens: Tokens) -> str:
    for name, method in inspect.getmembers(protocol.CiHost, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = list(inspect.signature(method).parameters)
        attribute = getattr(host, name, None)
        if attribute is None or list(inspect.signature(attribute).parameters) != parameters:
            return f"{name} does not take {', '.join(parameters)}"
    return ""


def _elsewhere(host: type[protocol.CiHost], tokens: Tokens) -> str:
    if host.is_here({}) is not False:
        return "it is here where no variable says so"
    if host(tokens).links(Path("out")) != protocol.Links():
        return "it knows an address that no variable says"
    return ""


def _no_event(host: type[protocol.CiHost], tokens: Tokens) -> str:
    try:
        event = host(tokens).event(protocol.AskedRevisions())
    except ConfigError as error:
        return "a refusal is more than one line" if "\n" in str(error) else ""
    return (
        ""
        if isinstance(event.revisions, protocol.Usual)
        else "it compares commits that nothing names"
    )


def _named_revisions(host: type[protocol.CiHost], tokens: Tokens) -> str:
    event = host(tokens).event(protocol.AskedRevisions(base=_BASE, head=_HEAD))
    if event.zone == "main":
        return "whoever names both revisions writes the main zone"
    return "" if event.pull_request is None else "whoever names both revisions has a pull request"


def _one_line_each(host: type[protocol.CiHost], tokens: Tokens) -> str:
    annotation = protocol.Annotation(
        level="error", title=_HOSTILE, text=_HOSTILE, file=_HOSTILE, line=1
    )
    outputs = {"verdict": "pass", "changed": _HOSTILE}
    report = protocol.JobReport(outputs=outputs, annotations=[annotation] * 2, summary=_HOSTILE)
    out, log = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(log):
        host(tokens).tell(report)
    lines = (out.getvalue() + log.getvalue()).split("\n")[:-1]
    if len(lines) != len(report.annotations):
        return f"{len(report.annotations)} annotations are {len(lines)} lines"
    planted = any(line.startswith("::error::planted") for line in lines)
    return "a text of an annotation is an instruction" if planted else ""


def _own_files(host: type[protocol.CiHost], tokens: Tokens) -> str:
    with tempfile.TemporaryDirectory() as directory, redirect_stdout(io.StringIO()):
        with redirect_stderr(io.StringIO()):
            host(tokens).tell(
                protocol.JobReport(
                    outputs={"verdict": "pass"}, summary="s", directory=Path(directory)
                )
            )
        foreign = [
            each.name for each in Path(directory).iterdir() if not each.name.startswith(PREFIX)
        ]
    return f"the file {foreign[0]} does not begin with {PREFIX}" if foreign else ""


def _literal_output(host: type[protocol.CiHost], tokens: Tokens) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream), host(tokens).literal_output():
        stream.write("names of a pull request\n")
    began, _, rest = stream.getvalue().partition("names of a pull request\n")
    return "" if bool(began) == bool(rest) else "what it switches off stays off, or was never off"


def _refused_comment(host: type[protocol.CiHost], tokens: Tokens) -> str:
    for event in (_REQUEST, protocol.JobEvent(revisions=protocol.Usual())):
        try:
            host(tokens).comment(event, "o", "report")
        except protocol.HostRefusedError as error:
            if SECRET in str(error):
                return "a refusal shows a token"
    return "its text shows a token" if SECRET in repr(host(tokens)) else ""


HOST_RULES = (
    HostRule(name="it has the methods of the protocol", problem=_methods),
    HostRule(name="it is nowhere where no variable says so", problem=_elsewhere),
    HostRule(name="an event without its variables is refused, or the usual", problem=_no_event),
    HostRule(name="named revisions teach nothing", problem=_named_revisions),
    HostRule(name="an annotation is one line", problem=_one_line_each),
    HostRule(name="its files have names of their own", problem=_own_files),
    HostRule(name="literal output ends as it began", problem=_literal_output),
    HostRule(name="a comment that is refused shows no token", problem=_refused_comment),
)
