"""Makes an environment for people: `python -m tunegate_environment LOCK DIRECTORY`. The lock's
folder must also have installer.lock."""

import os
import subprocess
import sys
from pathlib import Path

from tunegate_environment.children import cancel_on_signals
from tunegate_environment.complaints import complaint
from tunegate_environment.installing import Wanted, install


def main(lock: str, directory: str) -> int:
    """Returns the exit code: 0, or 4 if the environment could not be installed."""
    cancel_on_signals()
    installation = Wanted(Path(lock).resolve(), Path(directory).resolve(), os.environ)
    try:
        installer = install(installation)
    except (subprocess.CalledProcessError, OSError) as error:
        installation.clear()
        problem = f"tunegate: {installation.lock.name} could not be installed: {complaint(error)}"
        print(problem, file=sys.stderr)
        return 4
    print(f"tunegate: {installation.lock.name} is installed in {directory} by {installer}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
