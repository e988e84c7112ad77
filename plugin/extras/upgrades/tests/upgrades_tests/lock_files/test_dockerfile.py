"""The base images of a Dockerfile."""

from __future__ import annotations

from tunegate_upgrades.lock_files.dockerfile import base_images


def test_images_are_told_as_text_without_stages_of_its_own() -> None:
    text = (
        "ARG TAG=3.12\nFROM --platform=linux/amd64 python:${TAG} AS build\n"
        "from build as more\nRUN echo FROM nothing\nFROM nvidia/cuda@sha256:1 \\\n  AS run\n"
    )
    assert base_images(text) == ("python:${TAG}", "nvidia/cuda@sha256:1")


def test_a_file_without_an_image_has_none() -> None:
    assert base_images("RUN true\n") == ()
