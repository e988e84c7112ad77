import os
from pathlib import Path

import pytest

from tests.support.present import present
from tunegate.config import Config, ModelConfig
from tunegate.project import uncommitted_config, uncommitted_models
from tunegate.regular_files import opened_inside, read_regular, replace


def test_a_file_is_replaced_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("a long text of before")
    replace(tmp_path / "a.json", b"new")
    assert read_regular(tmp_path / "a.json") == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "a.json").symlink_to(precious)
    (tmp_path / ".a.json.partial").symlink_to(precious)
    replace(tmp_path / "a.json", b"new")
    assert precious.read_text() == "precious"
    assert not (tmp_path / "a.json").is_symlink()


def test_what_a_killed_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".a.json.partial").write_text("half")
    replace(tmp_path / "a.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_directory_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace(tmp_path / "a.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "device"])
def test_only_plain_files_are_read_and_nothing_is_waited_for(kind: str, tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    match kind:
        case "link":
            (tmp_path / "target").write_text("secret")
            odd.symlink_to(tmp_path / "target")
        case "pipe":
            os.mkfifo(odd)
        case "directory":
            odd.mkdir()
        case _:
            odd = Path("/dev/zero")
    with pytest.raises(OSError, match=r".+"):
        read_regular(odd)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"123")
    assert read_regular(tmp_path / "long", 3) == b"123"
    with pytest.raises(OSError, match="more than 2 bytes"):
        read_regular(tmp_path / "long", 2)


def test_a_file_is_read_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(b"x")
    found = present(opened_inside(tmp_path, "a/b/f"))
    with found:
        assert found.read() == b"x"


@pytest.mark.parametrize("path", ["link", "directory/f", "to/the/outside", "a", "pipe", "nothing"])
def test_what_is_no_file_or_lies_behind_a_link_is_none(tmp_path: Path, path: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    (outside / "the").mkdir(parents=True)
    for file in (root / "a" / "f", outside / "the" / "outside"):
        file.write_bytes(b"x")
    (root / "link").symlink_to("a/f")
    (root / "directory").symlink_to("a")
    (root / "to").symlink_to(outside)
    os.mkfifo(root / "pipe")
    assert opened_inside(root, path) is None


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "root").symlink_to("real")
    present(opened_inside(tmp_path / "root", "f")).close()


def test_a_configuration_that_is_not_committed_is_read_and_told() -> None:
    told = ("tunegate.yaml is read as it is here, with what is not committed",)
    assert uncommitted_config("tunegate.yaml", ["a", "tunegate.yaml"]) == told
    assert uncommitted_config("tunegate.yaml", ["a"]) == ()
    assert uncommitted_config(None, ["tunegate.yaml"]) == ()  # one outside of the repository


def test_data_beside_a_model_is_a_change_of_the_model() -> None:
    config = Config(models=(ModelConfig(path="models/*"),))
    (told,) = uncommitted_models(config, ["models/m.onnx.data", "models/a.txt", "b.onnx"])
    assert told.startswith("models/m.onnx is not committed as it is here")
