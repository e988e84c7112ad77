"""Reads a Dockerfile's base images and installed Python packages as text: nothing is built, and no
registry is asked."""

from __future__ import annotations

import json
import re
import shlex
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from posixpath import basename

import msgspec

from tunegate_upgrades.lock_files.kinds import lock_kind
from tunegate_upgrades.lock_files.lock import LockFileError

_FROM = re.compile(r"FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*(?:#.*)?", re.IGNORECASE)
_ARG = re.compile(r"ARG\s+(.+)", re.IGNORECASE)
_ENV = re.compile(r"ENV\s+(.+)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"\s*#\s*(?:syntax|escape|check)\s*=", re.IGNORECASE)
_TAKES_TEXT = re.compile(r"(?:ONBUILD\s+)?(?:RUN|COPY|ADD)\s", re.IGNORECASE)
_TEXT = re.compile(r"""(?<=\s)\d*<<(-?)["']?([^\s<"']+)["']?(?=\s|$)""")
_NO_COMMAND = re.compile(r"^[ \t]*#.*|\\\n", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")
_TOOL = re.compile(r"(pipenv|pip|uv|conda|mamba|micromamba|poetry|pdm|pixi)[\d.]*")
_INSTALLS = {"install", "add", "sync", "create"}
_BETWEEN_COMMANDS = re.compile(r"[;&|\n]")
_IN_ANOTHER = re.compile(r"\(|\b(?:ba|da|k|z)?sh\s+(?:-\S+\s+)*-\w*c\s")
"""Where a command is a word of another: `sh -c "pip install x"`, `(pip install x)`."""
_QUOTES = re.compile(r"""["'()]""")
_LOCK_OF_TOOL = {tool: f"{tool}.lock" for tool in ("uv", "poetry", "pdm", "pixi")} | {
    "pipenv": "Pipfile.lock"
}
_CONDA = {"conda", "mamba", "micromamba"}
_FILE_OPTIONS = {"-r", "--requirement", "--requirements", "--file"}
_VALUE_OPTIONS = {
    *("-c", "--constraint", "-i", "--index-url", "--extra-index-url", "--index", "--default-index"),
    *("--find-links", "-t", "--target", "--prefix", "--root", "--python", "-p", "--platform"),
    *("--channel", "-n", "--name", "--proxy", "--cert", "--trusted-host", "--group", "--extra"),
}
_COMPILER = re.compile(
    r"(?:\S+::|\S*/)?((?:apache[-_.])?tvm(?:[-_.](?:ffi|py))?)(?:\[.*\])?\s*"
    r"((?:[=<>!~@].*|-\d.*\.whl.*)?)",
    re.IGNORECASE,
)
"""A package of TVM as pip and conda name it, or its wheel, and the version that is asked for."""
_MAX_CHARACTERS = 200
_MAX_FILLED_IN = 2**20
"""The most characters that values add to all of a file: each may be long, and stand anywhere."""
_MAX_WORD = 20


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """One command that installs packages: those that it names, and the files of others."""

    line: int
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Instruction(msgspec.Struct, frozen=True, kw_only=True):
    """An instruction as it is written, and with the values that arguments have in the file."""

    line: int
    text: str
    filled_in: str


class ImageRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """`images` are its base images, with its arguments' defaults; one whose argument has none keeps
    its `$`. `installed` are the commands that install packages."""

    images: tuple[str, ...] = ()
    installed: tuple[Installed, ...] = ()
    instructions: tuple[Instruction, ...] = ()


def read_recipe(text: str) -> ImageRecipe:
    """Reads any text: one that is no Dockerfile has none of these."""
    instructions = tuple(_filled_in(_instructions(text)))
    return ImageRecipe(
        images=tuple(_base_images(each.text for each in instructions)),
        installed=tuple(run for each in instructions for run in _installs(each)),
        instructions=instructions,
    )


def unread(path: str, recipe: ImageRecipe, watched: Iterable[str]) -> Iterator[str]:
    """Yields a line for each part of a watched file that is not read, changed or not. Packages of
    `watched` files are gated, wherever the image copies them."""
    names = {basename(each) for each in watched}
    for image in (each for each in recipe.images if "$" in each):
        yield f"{path}: FROM {image}: the build gives the argument, so this image is not known here"
    for each in recipe.installed:
        if each.packages:
            yield (
                f"{path}:{each.line}: {_names(each.packages)} installed here is watched and not "
                "gated: pin it in a requirements file, install that with -r, and watch it"
            )
        for file in each.files:
            if basename(file) not in names:
                shown = file[:_MAX_CHARACTERS]
                yield f"{path}:{each.line}: the packages of {shown} are not gated: {_remedy(file)}"


def _remedy(file: str) -> str:
    try:
        lock_kind(file)
    except LockFileError:
        return "no such file is read, so compare two environments with tunegate compare --env"
    return "add the file to watch.files"


def change(path: str, base: ImageRecipe, head: ImageRecipe) -> str:
    """Returns one line if an instruction changed, '' if only comments did. Any may change what runs
    in the image: `curl` may bring a runtime, a script reads an argument, an index may have another
    build. So they must be the same, as they are written, in the same order."""
    pairs = zip_longest(base.instructions, head.instructions)
    differ = (pair for pair in pairs if not all(pair) or pair[0].text != pair[1].text)
    if (pair := next(differ, None)) is None:
        return ""
    old, new = pair
    where = (
        f"changed from line {new.line} ({_word(new.text)}) on"
        if new
        else f"{_word(old.text)} is gone at its end"
    )
    images = [", ".join(each.images) or "none" for each in (base, head)]
    sides = [{name for each in side.installed for name in each.packages} for side in (base, head)]
    what = "".join(
        (
            f"; base image {images[0]} -> {images[1]}" if images[0] != images[1] else "",
            f"; packages {_names(sorted(sides[0] ^ sides[1]))}" if sides[0] != sides[1] else "",
        )
    )
    why = "the image is not built, so nothing in it is measured"
    return f"{path}: {where}{what}: {why}"


def _word(line: str) -> str:
    return line.split(maxsplit=1)[0][:_MAX_WORD]


def installed_compilers(recipe: ImageRecipe) -> dict[str, str]:
    """Returns what pip or conda installs of TVM: the versions that its stages ask for by the name,
    `any` without one."""
    versions: dict[str, set[str]] = {}
    for run in recipe.installed:
        for match in filter(None, map(_COMPILER.fullmatch, run.packages)):
            name = re.sub(r"[-_.]", "-", match[1]).lower()
            versions.setdefault(name, set()).add(match[2].strip(" =-@") or "any")
    return {name: ", ".join(sorted(asked)) for name, asked in versions.items()}


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)[:_MAX_CHARACTERS]


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """Yields each instruction with the number of its first line. Comments are left out, even those
    between the lines of an instruction, but for directives. The text given to an instruction
    (`RUN <<END`) belongs to it as it is written: blanks may count there, and comments be
    content."""
    lines = text.splitlines()
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        numbers["", line].append(number)
        numbers["-", line.lstrip("\t")].append(number)
    parts, first, end = list[str](), 0, 0
    for number, line in enumerate(lines, 1):
        if number <= end:  # given to the instruction before
            continue
        stripped = line.strip()
        is_directive = not parts and _DIRECTIVE.match(line) is not None
        if not stripped or (stripped.startswith("#") and not is_directive):
            continue
        first = first if parts else number
        parts.append(stripped.removesuffix("\\").rstrip())
        if is_directive or not stripped.endswith("\\"):
            instruction = " ".join(parts)
            end = _end_of_text(instruction, number, numbers)
            yield first, "\n".join((instruction, *lines[number:end]))
            parts = []
    if any(parts):
        yield first, " ".join(parts)


def _end_of_text(
    instruction: str, number: int, numbers: Mapping[tuple[str, str], Sequence[int]]
) -> int:
    """Returns the last line of the text that is given to the instruction in this line, itself
    without one. `<<-END` allows tabs before the end; what never ends is no text."""
    for place in _TEXT.findall(instruction) if _TAKES_TEXT.match(instruction) else ():
        ends = numbers.get(place, ())
        at = bisect_right(ends, number)
        number = ends[at] if at < len(ends) else number
    return number


def _base_images(lines: Iterable[str]) -> Iterator[str]:
    """Yields the images, without its own earlier stages. Arguments before the first image count."""
    stages, arguments = set[str](), dict[str, str]()
    has_begun = False
    for line in lines:
        if not has_begun and (found := _ARG.fullmatch(line)):
            arguments |= dict(_defaults(found[1]))
        if (found := _FROM.fullmatch(line)) is None:
            continue
        has_begun = True
        image = _substitute(found[1], arguments)
        if image.lower() not in stages:
            yield image[:_MAX_CHARACTERS]
        stages.add((found[2] or "").lower())


def _filled_in(lines: Iterable[tuple[int, str]]) -> Iterator[Instruction]:
    """Yields each instruction, with the values that arguments and variables have by then."""
    values, room = dict[str, str](), _MAX_FILLED_IN
    for number, text in lines:
        line = text.strip()
        if declared := _ARG.fullmatch(line) or _ENV.fullmatch(line):
            name, _, value = declared[1].partition(" ")
            is_pair = "=" not in name and bool(value.strip())  # ENV NAME value
            values |= {name: value.strip()} if is_pair else dict(_defaults(declared[1]))
        if line:
            filled_in = _substitute(line, values, room)
            room -= max(0, len(filled_in) - len(line))
            yield Instruction(line=number, text=text, filled_in=filled_in)


def _defaults(text: str) -> Iterator[tuple[str, str]]:
    for word in _words(text):
        name, has_default, value = word.partition("=")
        if has_default:
            yield name, value


def _substitute(text: str, arguments: Mapping[str, str], room: int = _MAX_FILLED_IN) -> str:
    """Returns the text with the values of its arguments, as it is if they need more room."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return arguments.get(name) or match[3] or match[0]

    needed = sum(len(value(match)) for match in _VARIABLE.finditer(text))
    return _VARIABLE.sub(value, text) if needed <= room else text


def _installs(run: Instruction) -> Iterator[Installed]:
    text = _NO_COMMAND.sub(" ", _shell_form(run.filled_in))
    for command in _BETWEEN_COMMANDS.split(text):
        words = iter(_words(command))
        tool = _tool_that_installs(words)
        if tool is None and _IN_ANOTHER.search(command):
            words = iter(_QUOTES.sub(" ", command).split())
            tool = _tool_that_installs(words)
        if tool is None:
            continue
        packages, files = _arguments(tool[1], words)  # those behind `install`
        if not packages and not files and tool[1] in _LOCK_OF_TOOL:
            files = [_LOCK_OF_TOOL[tool[1]]]
        if packages or files:
            yield Installed(line=run.line, packages=tuple(packages), files=tuple(files))


def _tool_that_installs(words: Iterator[str]) -> re.Match[str] | None:
    """Returns the tool that installs something, and leaves the words behind its `install`."""
    tool = next(filter(None, (_TOOL.fullmatch(basename(word)) for word in words)), None)
    return tool if tool and any(word in _INSTALLS for word in words) else None


def _shell_form(line: str) -> str:
    """Returns the command of `RUN ["pip", "install", "x"]` in the shell form."""
    command = line.partition("[")[2]
    if line[:3].upper() == "RUN" and command:
        try:
            words = json.loads(f"[{command}")
        except (ValueError, RecursionError):
            return line
        if isinstance(words, list):
            return " ".join(map(str, words))
    return line


def _arguments(tool: str, words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the packages and the files of packages that a command names."""
    packages, files = list[str](), list[str]()
    rest = iter(words)
    for word in rest:
        option, has_value, value = word.partition("=")
        if option in _FILE_OPTIONS or (tool in _CONDA and option == "-f"):
            files.append(value if has_value else next(rest, ""))
        elif word.startswith("-r") and len(word) > len("-r"):
            files.append(word[len("-r") :])
        elif option in _VALUE_OPTIONS or (option == "-f" and tool not in _CONDA):
            if not has_value:
                next(rest, "")
        elif word.endswith(".whl") or not word.startswith(("-", ".", "/")):
            packages.append(word)
    return packages, [file for file in files if file]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
