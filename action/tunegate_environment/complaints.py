"""The complaint of another program, on one line and without passwords."""

import re
import subprocess

_MAX_LINE = 300
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


def complaint(error: subprocess.CalledProcessError | OSError) -> str:
    """Returns the last line of pip's or uv's complaint, which has the cause, without the password
    that an index's address may contain."""
    text = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
    lines = [line.strip() for line in str(text or "").strip().splitlines()]
    return _PASSWORD.sub("***@", lines[-1])[:_MAX_LINE] if lines else "no message"
