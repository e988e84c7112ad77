"""Decisions on the text of a message, found in the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import Function

TEXT_FIELDS = frozenset({"detail", "message", "note", "notes", "problem", "reason", "warning"})
TEXT_TESTS = frozenset({"startswith", "endswith", "find", "index", "removeprefix", "partition"})
PATTERN_TESTS = frozenset({"match", "fullmatch", "search", "findall", "finditer"})


def decisions_on_messages(function: Function) -> Iterator[ast.expr]:
    """Yields each test of an exception's text, and of what a field of ours says in prose."""
    messages = message_names(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call | ast.Compare) and decides(node, messages):
            yield node


def decides(node: ast.Call | ast.Compare, messages: frozenset[str]) -> bool:
    if isinstance(node, ast.Compare):
        return compares(node, messages)
    if not isinstance(node.func, ast.Attribute):
        return False
    tested = node.func.value
    if node.func.attr in TEXT_TESTS and is_message(tested, messages):
        return not any(is_mark(argument) for argument in node.args)
    return node.func.attr in PATTERN_TESTS and any(
        is_message(argument, messages) for argument in node.args
    )


def compares(node: ast.Compare, messages: frozenset[str]) -> bool:
    sides = [node.left, *node.comparators]
    if any(is_exception_text(side, messages) for side in sides):
        return any(not isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops)
    is_equality = all(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops)
    told = any(is_prose(side) or (is_equality and is_named_constant(side)) for side in sides)
    return told and any(is_field(side) for side in sides)


def is_message(node: ast.expr, messages: frozenset[str]) -> bool:
    return is_exception_text(node, messages) or is_field(node)


def is_exception_text(node: ast.expr, messages: frozenset[str]) -> bool:
    """`str(error)`, an f-string of it, a name that was given one, and any method of these."""
    match node:
        case ast.Name(id=name):
            return name in messages
        case ast.JoinedStr(values=parts):
            values = [part.value for part in parts if isinstance(part, ast.FormattedValue)]
            return any(is_exception_text(value, messages) for value in values)
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in messages
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
            return is_exception_text(value, messages)
        case ast.Attribute(value=ast.Name(id=name), attr="args"):
            return name in messages
        case _:
            return False


def is_field(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in TEXT_FIELDS
        case ast.Call(func=ast.Attribute(value=value, attr="lower" | "strip")):
            return is_field(value)
        case _:
            return False


def is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def is_mark(node: ast.expr) -> bool:
    """Whether it is a sign, such as the full stop that a message ends with."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) == 1


def is_named_constant(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case _:
            return False


def message_names(scope: Function) -> frozenset[str]:
    """Returns the names of caught or given exceptions in the function, and of their texts."""
    caught = (node.name for node in ast.walk(scope) if isinstance(node, ast.ExceptHandler))
    given = (each.arg for each in scope.args.args if is_exception(each.annotation))
    messages = frozenset(name for name in (*caught, *given) if name)
    for node in (node for node in ast.walk(scope) if isinstance(node, ast.Assign)):
        if is_exception_text(node.value, messages):
            messages = messages.union(*map(bound_names, node.targets))
    return messages


def bound_names(target: ast.expr) -> set[str]:
    names = (node for node in ast.walk(target) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def is_exception(annotation: ast.expr | None) -> bool:
    last = ast.unparse(annotation).rpartition(".")[2] if annotation else ""
    return last.endswith(("Error", "Exception"))
