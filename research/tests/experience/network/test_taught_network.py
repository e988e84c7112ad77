"""A trained network with its card, and as ways to rank."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace
from tests.tune.test_prior import experience

from research.experience.network.network_card import data_sha256, problem_of_card
from research.experience.network.taught_network import ADAPTED_NETWORK, NETWORK, taught_network

TASKS = tuple(replace(experience(), name=name, models=("m", name)) for name in "ab")


def test_the_card_says_what_it_was_trained_on() -> None:
    body, card = taught_network(TASKS, 1)
    assert not problem_of_card(card)
    assert (card.tasks, card.measurements) == (2, 60)
    assert (card.layers, card.models) == (("a", "b"), ("a", "b", "m"))
    assert card.data_sha256 == data_sha256(TASKS)
    assert card.body_sha256 == hashlib.sha256(body).hexdigest()
    assert card.trained_with.startswith("jax ")


def test_each_way_to_adapt_it_has_a_name_of_its_own() -> None:
    assert set(NETWORK).isdisjoint(ADAPTED_NETWORK)
    assert NETWORK["network"] is ADAPTED_NETWORK["network, meta-trained"]
