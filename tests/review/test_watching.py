"""Which lock files are watched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import WatchConfig
from tunegate.review.base_rules import merged_watch, watch_changes

globs = st.lists(st.sampled_from(["a.txt", "b.txt", "c.txt"]), unique=True).map(tuple)
indexes = st.sampled_from([(), ("https://a.example",), ("https://b.example",)])
watches = st.builds(WatchConfig, files=globs, indexes=indexes)


@given(watches, watches)
def test_the_head_only_adds_files_and_no_place_of_packages(
    base: WatchConfig, head: WatchConfig
) -> None:
    judging = merged_watch(base, head)
    assert set(judging.files) == {*base.files, *head.files}
    assert judging.indexes == base.indexes


@given(watches, watches)
def test_every_difference_is_told_and_only_more_files_count_at_once(
    base: WatchConfig, head: WatchConfig
) -> None:
    told = list(watch_changes(base, head))
    assert bool(told) == (set(base.files) != set(head.files) or base.indexes != head.indexes)
    for change in told:
        is_new_file = change.key == "watch.files" and change.old == "not set"
        assert (change.counts == "now") == is_new_file == (not change.weakens)
