"""A bench worker that never answers."""

import time

from tunegate.measure.bench_messages import BenchReply, BenchRequest, Broken

Request = BenchRequest


def handle_request(request: BenchRequest) -> BenchReply:
    time.sleep(600)
    return Broken("woke up")
