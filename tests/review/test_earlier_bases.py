from __future__ import annotations

from collections.abc import Mapping

from tests.support.measured_cells import MODEL, make_changes, make_version
from tunegate.artifacts.changes import Ancestor, ModelOutline, ModelPath, ModelVersion
from tunegate.review.detect import with_earlier_bases

BROKEN = {MODEL: "m.onnx: not a valid ONNX model"}


class History:
    """Versions by their content, latest first, three commits between them."""

    def __init__(self, *contents: str) -> None:
        self.contents = list(contents)

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        return {}

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        return None

    def blob(self, revision: str, path: str) -> str:
        raise NotImplementedError

    def submodules(self, revision: str) -> Mapping[str, str]:
        raise NotImplementedError

    def obstacle(self, revision: str, path: str) -> str:
        return ""

    def with_data_files(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        return version, ""

    def opened(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        return version, ""

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        after = self.contents.index(version.content_digest) + 1
        return (make_version(self.contents[after]), 3) if after < len(self.contents) else None


def test_the_version_before_takes_the_place_of_a_broken_base() -> None:
    (change,) = with_earlier_bases(make_changes(), BROKEN, History("b", "a")).models
    assert change.base == make_version("a")
    assert change.change == "unknown"
    assert change.ancestor == Ancestor(commits=3, reason=BROKEN[MODEL])


def test_further_back_the_commits_add_up_and_the_first_reason_stays() -> None:
    history = History("b", "a", "z")
    once = with_earlier_bases(make_changes(), BROKEN, history)
    (change,) = with_earlier_bases(once, {MODEL: "also broken"}, history).models
    assert change.base == make_version("z")
    assert change.ancestor == Ancestor(commits=6, reason=BROKEN[MODEL])


def test_where_there_is_none_and_where_nothing_is_broken_it_stays_as_it_is() -> None:
    changes = make_changes()
    assert with_earlier_bases(changes, BROKEN, History("b")) == changes
    assert with_earlier_bases(changes, {}, History("b", "a")) == changes
