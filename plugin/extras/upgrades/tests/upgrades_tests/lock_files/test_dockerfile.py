"""The images and packages that are read of a Dockerfile, and the lines that are not."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.dockerfile import (
    change,
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
        ('RUN bash -lc "python -m pip install a==1"', ["a==1"], []),
        ("RUN (pip install a==1)", ["a==1"], []),
        ("RUN pip install $(cat r) 'a (>=1)' b==1", ["$(cat", "r)", "a (>=1)", "b==1"], []),
        ("RUN " + "[" * 100_000, [], []),
        ("RUN uv sync --frozen", [], ["uv.lock"]),
        ("RUN pipenv install --deploy", [], ["Pipfile.lock"]),
        ("RUN <<EOF\npip install a==1 \\\n  c\n# pip install b\nEOF", ["a==1", "c"], []),
        ("RUN <<EOF\nEOF\n# RUN pip install a==1", [], []),
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


def test_an_instruction_that_its_values_would_make_huge_stays_as_it_is_written() -> None:
    recipe = read_recipe(f"ENV A={'x' * 60_000}\n" + "RUN $A\n" * 9_000 + "RUN " + "$A" * 40_000)
    assert recipe.instructions[1].filled_in.startswith("RUN xx")
    assert {each.filled_in for each in recipe.instructions[20:-1]} == {"RUN $A"}
    assert recipe.instructions[-1].filled_in == recipe.instructions[-1].text


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
    ("old", "new"),
    [
        ("FROM x\nARG ORT=1\nRUN ./get.sh", "FROM x\nARG ORT=2\nRUN ./get.sh"),
        ("FROM x AS a\nFROM y AS b\nFROM a", "FROM x AS a\nFROM y AS b\nFROM b"),
        (
            "RUN pip install a\nRUN pip install b",
            "RUN pip install b\nRUN pip install a",
        ),
        ("RUN pip install a\nRUN b", "RUN pip install a\nRUN b\nRUN pip install a"),
        ("RUN pip install -i a b", "RUN pip install -i c b"),
        ("# syntax=a\nFROM x", "# syntax=b\nFROM x"),
        ("# escape=\\\nRUN x", "# escape=\\\nRUN y"),
        ("RUN <<E\n# a\nE", "RUN <<E\n# b\nE"),
        ("RUN <<E\n if a\n  b\nE", "RUN <<E\n if a\n b\nE"),
        ("RUN <<-E\n\tE\n# a", "RUN <<-E\nE\n# a"),
        ("COPY <<A <<'B' /c\nA\n# a\nB", "COPY <<A <<'B' /c\nA\n# b\nB"),
    ],
    ids=[
        *("argument", "stage", "order", "once more", "index", "directive", "behind a directive"),
        *("text inside", "blanks of it", "tabs before its end", "second text"),
    ],
)
def test_a_changed_instruction_is_a_line(old: str, new: str) -> None:
    line = change("D", read_recipe(old), read_recipe(new))
    assert "the image is not built" in line
    assert change("D", read_recipe(new), read_recipe(new)) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RUN a \\\n b", "RUN a \\\n    b"),
        ("RUN a \\\n b", "RUN a \\\n # c\n\n b"),
        ("FROM x\nRUN a # b", "FROM x\n# c\n\nRUN a # b"),
        ("# a\nRUN <<E\nE\n# b", "RUN <<E\nE\n# c"),
        ("# a\nRUN echo $((1<<3))\n# b", "RUN echo $((1<<3))\n# c"),
        ("RUN echo 'a <<E b'\n# a\nRUN c", "RUN echo 'a <<E b'\nRUN c"),
        ("RUN a \\\n\n", "RUN a"),
    ],
    ids=[
        "blanks",
        "comment inside",
        "comment",
        "comments beside text",
        "shift",
        "no text",
        "open end",
    ],
)
def test_blanks_and_comments_are_no_change(old: str, new: str) -> None:
    assert change("D", read_recipe(old), read_recipe(new)) == ""


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("FROM a\nRUN b", "FROM a", "RUN is gone at its end"),
        ("FROM a\nRUN b\nCOPY c d", "FROM a\nCOPY c d", "changed from line 2 (COPY) on"),
        ("FROM a", "\nFROM b", "changed from line 2 (FROM) on; base image a -> b"),
        (
            "RUN pip install a b",
            "RUN pip install a c",
            "changed from line 1 (RUN) on; packages b, c",
        ),
        ("RUN pip install a==1", 'RUN ["pip", "install", "a==1"]', "changed from line 1 (RUN) on"),
        (
            "ARG V=1\nFROM a:$V",
            "ARG V=2\nFROM a:$V",
            "changed from line 1 (ARG) on; base image a:1 -> a:2",
        ),
    ],
)
def test_a_change_names_where_it_begins_with_images_and_packages(
    old: str, new: str, what: str
) -> None:
    why = "the image is not built, so nothing in it is measured"
    assert change("D", read_recipe(old), read_recipe(new)) == f"D: {what}: {why}"
