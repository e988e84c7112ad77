from __future__ import annotations

import io

from tests.system.progress.test_terminal import Tty
from tunegate.system.progress.shown_progress import Pulsed, Terminal, progress


def test_a_terminal_gets_a_live_line_and_a_log_plain_ones() -> None:
    assert isinstance(progress(Tty()), Terminal)
    plain = progress(io.StringIO())
    assert isinstance(plain, Pulsed)
    plain.close()
