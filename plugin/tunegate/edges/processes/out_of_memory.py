"""Memory that was refused, in whatever words a library has for it."""

from __future__ import annotations

import resource

_WORDS = (
    *("Failed to allocate memory", "bad_alloc", "bad allocation", "Unable to allocate"),
    *("Cannot allocate memory", "MemoryError", "out of memory", "std::length_error"),
)


def memory_problem(error: BaseException) -> str:
    """Returns a sentence on the lack of memory; an empty string for an error of another kind."""
    text = f"{type(error).__name__}: {error}"
    if not any(words in text for words in _WORDS):
        return ""
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit_bytes == resource.RLIM_INFINITY:
        return "it needs more memory than there is"
    return f"it needs more than the {limit_bytes / 1e9:.1f} GB of memory that it may take here"


def lacked_memory(error: BaseException) -> bool:
    """Returns whether an error, or its cause, is a lack of memory."""
    cause = error.__cause__
    return bool(memory_problem(error)) or (cause is not None and lacked_memory(cause))
