"""The images and packages that are read of a Dockerfile, and the lines that are not."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.dockerfile import (
    Installed,
    changed_installs,
    changed_lines,
    read_recipe,
    unread,
)


def test_images_are_told_without_stages_of_its_own_and_with_their_arguments() -> None:
    text = (
        "ARG TAG=3.12\nARG CUDA\nFROM --platform=linux/amd64 python:${TAG} AS build\n"
        "from build as more\nRUN echo FROM nothing\nFROM nvidia/cuda@sha256:1 \\\n  AS run\n"
        "FROM cuda:${CUDA}\nFROM x:${ELSE:-7}\n"
    )
    recipe = read_recipe(text)
    assert recipe.images == ("python:3.12", "nvidia/cuda@sha256:1", "cuda:${CUDA}", "x:7")
    assert recipe.unknown == ("cuda:${CUDA}",)


def test_a_file_without_an_image_has_none() -> None:
    assert read_recipe("RUN true\n").images == ()


@pytest.mark.parametrize(
    ("command", "packages", "files"),
    [
        ("RUN pip install onnxruntime==1.20.1", ["onnxruntime==1.20.1"], []),
        ("run python3 -m pip install -q --index-url https://x 'a[b]>=1' c", ["a[b]>=1", "c"], []),
        ("RUN apt-get update && pip3.11 install a==1 && rm -rf /x", ["a==1"], []),
        ('RUN ["pip", "install", "a[gpu]==1"]', ["a[gpu]==1"], []),
        ("RUN uv pip install --system a==1", ["a==1"], []),
        (
            "RUN --mount=type=cache,target=/c pip install \\\n  # why\n  a==1 \\\n b==2",
            ["a==1", "b==2"],
            [],
        ),
        ("RUN conda install -y -c conda-forge onnxruntime=1.20", ["onnxruntime=1.20"], []),
        ("RUN pip install -r requirements.txt .", [], ["requirements.txt"]),
        ("RUN conda env create -f environment.yml", [], ["environment.yml"]),
        ("RUN pip install /w/*.whl $ORT . ./own /own", ["/w/*.whl", "$ORT"], []),
        ("RUN uv sync --frozen", [], ["uv.lock"]),
        ("RUN pipenv install --deploy", [], ["Pipfile.lock"]),
        ("RUN <<EOF\npip install a==1\nEOF", ["a==1"], []),
        ("RUN apt-get install -y git", [], []),
        ("# RUN pip install a==1", [], []),
        ("COPY pip install", [], []),
    ],
)
def test_what_installs_packages_is_found(
    command: str, packages: list[str], files: list[str]
) -> None:
    found = read_recipe(f"FROM x\n{command}\n").installed
    assert [name for each in found for name in each.packages] == packages
    assert [name for each in found for name in each.files] == files


def test_what_is_watched_and_not_read_is_a_line_each() -> None:
    recipe = read_recipe(
        "FROM $BASE\nRUN pip install onnxruntime==1.20.1\nRUN pip install -r a.txt -r b.txt\n"
        "RUN conda env create -f environment.yml\n"
    )
    assert [*unread("Dockerfile", recipe, ["deploy/a.txt", "Dockerfile"])] == [
        "Dockerfile: FROM $BASE: the build gives the argument, so this image is not known here",
        (
            "Dockerfile:2: onnxruntime==1.20.1 installed here is watched and not gated: pin it "
            "in a requirements file, install that with -r, and watch it"
        ),
        "Dockerfile:3: the packages of b.txt are not gated: add the file to watch.files",
        (
            "Dockerfile:4: the packages of environment.yml are not gated: no such file is read, "
            "so compare two environments with tunegate compare --env"
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("FROM x\nARG ORT=1\nRUN ./get.sh", "FROM x\nARG ORT=2\nRUN ./get.sh", "ARG"),
        ("FROM x AS a\nFROM y AS b\nFROM a", "FROM x AS a\nFROM y AS b\nFROM b", "FROM"),
        ("FROM a:1 AS x\nRUN b", "FROM a:2 AS x\nRUN b", ""),
        ("FROM x\nRUN pip install a==1", "FROM x\nRUN pip install a==2", ""),
        ("ARG A=1\nRUN pip install b==1", "ARG A=2\nRUN pip install b==2", "ARG"),
        ("FROM a AS b\nFROM c\nFROM b", "FROM a AS b\nFROM d\nFROM c", "FROM"),
        ("FROM a:1\nRUN b", "FROM a:2\nRUN c", "RUN"),
        ("FROM x\nRUN pip install -i a b", "FROM x\nRUN pip install -i c b", "RUN"),
        (
            "RUN pip install a==1\nRUN pip install a==2",
            "RUN pip install a==2\nRUN pip install a==1",
            "RUN",
        ),
        ("RUN pip install a b\nRUN c", "RUN pip install a b\nRUN c\nRUN pip install a b", "RUN"),
        (
            "RUN pip install a\nRUN pip install b\nRUN pip install a",
            "RUN pip install a\nRUN pip install b",
            "RUN",
        ),
        (
            "FROM x\nARG A=1\nRUN pip install b==$A\nFROM y\nARG A=1\nRUN ./c",
            "FROM x\nARG A=1\nRUN pip install b==$A\nFROM y\nARG A=2\nRUN ./c",
            "ARG",
        ),
        ("# syntax=a\nFROM x", "# syntax=b\nFROM x", "#"),
        ("RUN <<E\n# a\nE", "RUN <<E\n# b\nE", "#"),
        ("RUN <<E\n if a\n  b\nE", "RUN <<E\n if a\n b\nE", "b"),
        ("RUN pip install a==1 b", "RUN pip install -i c a==2 b", "RUN"),
        ('RUN ["pip", "install", "a==1"]', 'RUN ["pip", "install", "a==2"]', ""),
        ("RUN a \\\n b", "RUN a \\\n    b", ""),
        ("FROM x\nRUN a # b", "FROM x\n# c\n\nRUN a # b", ""),
    ],
    ids=[
        "script",
        "stage",
        "image",
        "package",
        "beside",
        "other image",
        "both",
        "index",
        "order",
        "again",
        "no longer again",
        "other stage",
        "directive",
        "text inside",
        "blanks of it",
        "index beside a package",
        "exec form",
        "blanks",
        "comment",
    ],
)
def test_a_changed_line_of_which_nothing_else_tells_is_told(old: str, new: str, word: str) -> None:
    words = [line.split()[1] for line in changed_lines("D", read_recipe(old), read_recipe(new))]
    assert words == ([word] if word else [])


def test_packages_that_only_one_side_installs_changed() -> None:
    base, head = (read_recipe(f"RUN pip install numpy==2 a=={each}\n") for each in (1, 2))
    assert base.installed == (Installed(line=1, packages=("numpy==2", "a==1")),)
    assert changed_installs(base, head) == ("a==1", "a==2")
    assert changed_installs(base, base) == ()
