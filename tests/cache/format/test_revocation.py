"""What is not believed: revoked records, unsigned segments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cache.format.test_signing import OURS, THEIRS
from tests.support.compacted_place import MAIN, Place
from tests.support.tuning_records import make_record
from tunegate_cache.format.records import Provenance, TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import group_state


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


REVOCATIONS: list[tuple[Callable[[TuningRecord], Revocation], str]] = [
    (lambda r: Revocation(repository=r.source.repository), "by repository"),
    (lambda r: Revocation(run=r.source.run), "by run"),
    (lambda r: Revocation(since=r.measured_at, until=r.measured_at), "by time"),
]


@pytest.mark.parametrize(("rule", "how"), REVOCATIONS, ids=[how for _, how in REVOCATIONS])
def test_what_is_revoked_is_served_no_more_and_the_next_best_is(
    place: Place, rule: Callable[[TuningRecord], Revocation], how: str
) -> None:
    good = make_record(run_nanoseconds=(2000,))
    bad = make_record(
        run_nanoseconds=(1000,),
        decisions=((3, (2, 32)),),
        measured_at=1_796_000_000,
        source=Provenance(repository="evil/x", run="666"),
    )
    place.publish(good, bad)
    place.compact()
    assert place.best() == bad
    assert place.compact([rule(bad)]).status == "compacted"
    assert place.best() == good
    place.publish(bad)
    assert place.best() == good


def test_a_revoked_key_takes_all_that_it_signed_with_it(tmp_path: Path) -> None:
    keys = TrustedKeys({"main": (OURS.public, THEIRS.public)})
    place = Place(tmp_path, keys, OURS)
    place.publish(make_record("ours"))
    place.publish(make_record("theirs"), signer=THEIRS)
    place.compact()
    place.collect()
    assert place.best("theirs") == make_record("theirs")
    place.compact([Revocation(key=THEIRS.key)])
    assert place.best("theirs") is None
    assert place.best("ours") == make_record("ours")


def test_a_zone_with_keys_believes_nothing_unsigned(tmp_path: Path) -> None:
    place = Place(tmp_path, TrustedKeys({"main": (OURS.public,)}), OURS)
    place.publish(make_record("a"))
    stranger = Place(tmp_path / "stranger")
    stranger.store = place.store
    stranger.publish(make_record("b"))
    assert (place.best("a"), place.best("b")) == (make_record("a"), None)
    done = place.compact()
    assert done.segments == 1
    assert any("not signed" in problem for problem in done.problems)
    assert (place.best("a"), place.best("b")) == (make_record("a"), None)
    assert place.compact().status == "nothing new"
    head = group_state.current_head(place.store, MAIN, TrustedKeys({"main": (THEIRS.public,)}))
    assert head.problem == "HEAD is not signed by a trusted key"
