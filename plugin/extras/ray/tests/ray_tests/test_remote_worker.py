"""A worker on a cluster that is let go before it has answered; test_cluster.py has real ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

import pytest
from tests.tune.test_workers import request

from tunegate_ray.door import Ray
from tunegate_ray.references import References
from tunegate_ray.remote_worker import RemoteWorker


class Started:
    node = "node"


class Cluster:
    """The door of Ray: everything is there at once but answers, which
    come when they are told to."""

    errors = (RuntimeError,)

    def __init__(self) -> None:
        self.when_answered: list[Callable[[], None]] = []

    def value(self, _: object) -> Started:
        return Started()

    def put(self, value: object) -> object:
        return value

    def when_done(self, _: object, call: Callable[[], None]) -> None:
        self.when_answered.append(call)

    def kill(self, actor: object) -> None:
        pass


def test_an_answer_that_comes_after_its_worker_was_let_go_rings_nowhere() -> None:
    cluster = Cluster()
    ray = cast("Ray", cluster)
    worker = RemoteWorker(ray, ["actor"], lambda *_: "answer", "started", References(ray))
    worker.send(request(1, ""))
    bell = worker.fileno()
    worker.kill()
    worker.kill()
    (answered,) = cluster.when_answered
    answered()
    assert bell >= 0
    assert worker.fileno() == -1


@pytest.mark.parametrize("answers", [1, 2])
def test_an_answer_rings(answers: int) -> None:
    cluster = Cluster()
    ray = cast("Ray", cluster)
    worker = RemoteWorker(ray, [], lambda *_: "answer", "started", References(ray))
    for number in range(answers):
        worker.send(request(number, ""))
        cluster.when_answered[-1]()
    assert os.eventfd_read(worker.fileno()) == answers
    worker.kill()
