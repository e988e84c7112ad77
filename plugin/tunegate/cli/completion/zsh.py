"""The completion of zsh, with the meaning of every word."""

from __future__ import annotations

from collections.abc import Iterable

from tunegate.cli.completion.words import Flag, Offer, Word, group_words, offers, top_words

_SCRIPT = """\
#compdef tunegate
# zsh completion of tunegate: tunegate completion zsh > a file _tunegate in a folder of $fpath
_tunegate() {{
  local -a offered
  [[ $words[2] == help ]] && {{ shift words; (( CURRENT-- )) }}
  if (( CURRENT == 2 )); then
    offered=(
{top}
    )
    _describe command offered
    return
  fi
  case $words[2] in
{groups}
  esac
  case "$words[2]" in
{commands}
  esac
}}
if [[ $funcstack[1] == _tunegate ]]; then
  _tunegate "$@"
else
  compdef _tunegate tunegate
fi
"""
_GROUP = """\
  {name})
    if (( CURRENT == 3 )); then
      offered=(
{words}
      )
      _describe command offered
      return
    fi
    words[2,3]=("$words[2] $words[3]"); (( CURRENT-- ))
    ;;"""
_ACTIONS = {"file": "_files", "directory": "_files -/", "other": " "}


def script() -> str:
    """The text of a file `_tunegate`."""
    groups = (
        _GROUP.format(name=name, words=_listing(words, 8)) for name, words in group_words().items()
    )
    return _SCRIPT.format(
        top=_listing(top_words(), 6),
        groups="\n".join(groups),
        commands="\n".join(_command(offer) for offer in offers()),
    )


def _listing(words: Iterable[Word], indent: int) -> str:
    return "\n".join(f"{' ' * indent}{_quoted(f'{w.text}:{w.meaning}')}" for w in words)


def _command(offer: Offer) -> str:
    specs = [_spec(flag, name) for flag in offer.flags for name in flag.names]
    specs += [f"*:{_escaped(flag.metavar)}:{_action(flag)}" for flag in offer.arguments[:1]]
    lines = " \\\n".join(f"      {_quoted(spec)}" for spec in specs)
    head = f'  "{offer.command}")\n    shift words; (( CURRENT-- ))\n'
    return f"{head}    _arguments \\\n{lines}\n    ;;"


def _spec(flag: Flag, name: str) -> str:
    meaning = f"[{_escaped(flag.meaning)}]"
    if flag.kind is None:
        return f"{name}{meaning}"
    separator = "=" if name.startswith("--") else ""
    return f"{name}{separator}{meaning}:{_escaped(flag.metavar)}:{_action(flag)}"


def _action(flag: Flag) -> str:
    if flag.kind == "choice":
        return f"({' '.join(flag.choices)})"
    return _ACTIONS[flag.kind or "other"]


def _escaped(text: str) -> str:
    """Returns the text with the characters escaped that end a part of a specification."""
    for each in ("\\", ":", "[", "]"):
        text = text.replace(each, f"\\{each}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
