"""TensorRT's reason for refusing a model, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PREFIX: Final = re.compile(r"^(IBuilder::\w+: )?(Error Code \d+: )?(\w+ \(|\[\w+\.cpp[^\]]*\] )?")
_NO_DRIVER: Final = re.compile(r"CUDA (initialization|driver).*", re.IGNORECASE)
_MAX_CHARACTERS: Final = 200


def engine_refusal(said: Sequence[str]) -> str:
    """Returns the first error, which those after it come from."""
    lines = [line.strip() for text in said for line in text.splitlines() if line.strip()]
    if not lines:
        return "gives no reason"
    no_driver = next((found[0] for line in lines if (found := _NO_DRIVER.search(line))), "")
    if no_driver:
        return f"does not start: {no_driver}"[:_MAX_CHARACTERS]
    first = _PREFIX.sub("", lines[0])
    return f"does not take the model: {first}"[:_MAX_CHARACTERS]
