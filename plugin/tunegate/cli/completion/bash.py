"""The completion of bash. It is printed once and runs nothing of ours, so a key costs no start."""

from __future__ import annotations

from collections.abc import Iterable

from tunegate.cli.completion.words import Flag, Offer, group_words, offers, top_words

_SCRIPT = """\
# bash completion of tunegate: eval "$(tunegate completion bash)"
_tunegate() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    local words=("${{COMP_WORDS[@]:1:COMP_CWORD-1}}") command offered=""
    [[ $current == "=" ]] && current=""
    [[ $before == "=" ]] && before=${{COMP_WORDS[COMP_CWORD - 2]}}
    [[ ${{words[0]}} == help ]] && words=("${{words[@]:1}}")
    command=${{words[0]}}
    case $command in
    {groups}) [[ -n ${{words[1]}} ]] && command="$command ${{words[1]}}" ;;
    esac
    COMPREPLY=()
    case $before in
{values}
    esac
    case $command in
{commands}
    esac
    COMPREPLY=($(compgen -W "$offered" -- "$current"))
}}
complete -o default -F _tunegate tunegate
"""


_FILES = 'mapfile -t COMPREPLY < <(compgen -f -- "$current"); compopt -o filenames'
_FOLDERS = 'mapfile -t COMPREPLY < <(compgen -d -- "$current"); compopt -o filenames'
_NOTHING = "compopt +o default"


def script() -> str:
    """The text that bash evaluates."""
    listed = tuple(offers())
    groups = group_words().items()
    commands = [_offered("", [*(word.text for word in top_words()), "--help", "--version"])]
    commands += [_offered(name, [word.text for word in words]) for name, words in groups]
    commands += [_after(offer) for offer in listed]
    return _SCRIPT.format(
        groups=" | ".join(group_words()),
        values="\n".join(_values(flag for offer in listed for flag in offer.flags)),
        commands="\n".join(commands),
    )


def _after(offer: Offer) -> str:
    choices = [choice for argument in offer.arguments for choice in argument.choices]
    names = [name for flag in offer.flags for name in flag.names]
    takes_files = any(argument.kind in {"file", "directory"} for argument in offer.arguments)
    # Bash itself offers files where nothing of ours fits.
    return _offered(offer.command, [*choices, *names], when="-*" if takes_files else "*")


def _offered(command: str, words: list[str], when: str = "*") -> str:
    test = "" if when == "*" else f"[[ $current == {when} ]] && "
    return f'    "{command}") {test}offered="{" ".join(words)}" ;;'


def _values(flags: Iterable[Flag]) -> list[str]:
    """Returns a line for each kind of value: the options before it, and the values offered for
    it."""
    names: dict[str, dict[str, None]] = {}
    for flag in flags:
        if flag.kind is not None:
            names.setdefault(_values_of(flag), {}).update(dict.fromkeys(flag.names))
    return [f"    {' | '.join(each)}) {offered}; return ;;" for offered, each in names.items()]


def _values_of(flag: Flag) -> str:
    match flag.kind:
        case "file":
            return _FILES
        case "directory":
            return _FOLDERS
        case "choice":
            return f'COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$current"))'
        case _:
            return _NOTHING
