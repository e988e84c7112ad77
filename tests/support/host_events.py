"""Rules for the event of any CI host, whatever the variables of the job are."""

from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.protocol import AskedRevisions, JobEvent, Usual
from tunegate.errors import ConfigError

HEAD, BEFORE = "a" * 40, "b" * 40
Reader = Callable[[Mapping[str, str], AskedRevisions], JobEvent]
VALUES = st.sampled_from(
    ["", "main", "7", "true", "false", "True", "False", HEAD, "../..", "-x", "refs/heads/main"]
) | st.text(max_size=20)


def require_sound_events(read: Reader, whole: Mapping[str, str]) -> None:
    """A job with some of the variables changed is refused, or writes a zone of its own kind."""

    @given(st.dictionaries(st.sampled_from(sorted(whole)), VALUES, max_size=4))
    def holds(changed: dict[str, str]) -> None:
        try:
            event = read({**whole, **changed}, AskedRevisions())
        except ConfigError:
            return
        assert event.zone is None or event.zone == "main" or event.zone.startswith("pr/")
        assert event.zone != "main" or event.pull_request is None
        assert event.checked_out in {"", *changed.values(), *whole.values()}

    holds()


def require_named_revisions_only_read(
    read: Reader, whole: Mapping[str, str], *, is_request: bool
) -> None:
    """Whoever names both revisions reads the cache, and writes nothing."""
    event = read(whole, AskedRevisions(base=BEFORE, head=HEAD))
    assert (event.revisions, event.zone, event.checked_out) == (Usual(), None, "")
    assert (event.pull_request is not None) == is_request
