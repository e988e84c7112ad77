"""The completion of fish, with the meaning of every word."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.cli.completion.words import Flag, Offer, group_words, offers, top_words

_HEAD = """\
# fish completion of tunegate: tunegate completion fish | source
function __tunegate_command
    set -l words (commandline -opc)
    set -e words[1]
    test "$words[1]" = help; and set -e words[1]
    if contains -- "$words[1]" {groups}; and set -q words[2]
        echo "$words[1] $words[2]"
    else
        echo "$words[1]"
    end
end
function __tunegate_is
    test (__tunegate_command) = "$argv"
end
complete -c tunegate -f
"""


def script() -> str:
    """The text that fish sources."""
    return _HEAD.format(groups=" ".join(group_words())) + "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    named = {"": top_words(), **group_words()}
    for name, words in named.items():
        for word in words:
            yield f"{_when(name)} -a {word.text} -d {_quoted(word.meaning)}"
    yield f"{_when('')} -l version -d {_quoted('show the version')}"
    yield f"{_when('')} -s h -l help -d {_quoted('show the commands')}"
    for offer in offers():
        yield from _of(offer)


def _of(offer: Offer) -> Iterator[str]:
    when = _when(offer.command)
    for flag in offer.flags:
        names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in flag.names)
        yield f"{when} {names}{_value(flag)} -d {_quoted(flag.meaning)}"
    for argument in offer.arguments[:1]:
        if argument.choices:
            yield f"{when} -a {_quoted(' '.join(argument.choices))}"
        elif argument.kind != "other":
            yield f"{when} -F"


def _value(flag: Flag) -> str:
    match flag.kind:
        case None:
            return ""
        case "choice":
            return f" -x -a {_quoted(' '.join(flag.choices))}"
        case "file" | "directory":
            return " -r -F"
        case "other":
            return " -x"


def _when(command: str) -> str:
    condition = f"__tunegate_is {command}".rstrip()
    return f"complete -c tunegate -n {_quoted(condition)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
