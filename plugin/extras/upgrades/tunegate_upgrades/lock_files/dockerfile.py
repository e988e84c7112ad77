"""The base images of a Dockerfile, as text: none is built, and no registry is asked."""

from __future__ import annotations

import re

_FROM = re.compile(
    r"^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?\s*(?:#.*)?$", re.IGNORECASE | re.MULTILINE
)


def base_images(text: str) -> tuple[str, ...]:
    """The images that it begins with, without its own earlier stages."""
    stages: set[str] = set()
    images: list[str] = []
    for image, stage in _FROM.findall(text.replace("\\\n", " ")):
        if image.lower() not in stages:
            images.append(image[:200])
        stages.add(stage.lower())
    return tuple(images)
