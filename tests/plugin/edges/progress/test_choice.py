from __future__ import annotations

import io

from tests.plugin.edges.progress.test_terminal import Tty
from tunegate.edges.progress.choice import progress
from tunegate.edges.progress.plain_log import Pulsed
from tunegate.edges.progress.terminal import Terminal


def test_a_terminal_gets_a_live_line_and_a_log_plain_ones() -> None:
    assert isinstance(progress(Tty()), Terminal)
    plain = progress(io.StringIO())
    assert isinstance(plain, Pulsed)
    plain.close()
