"""The `tunegate` command, and `python -m tunegate`, which begins with the checkout on its path.

Any Python 3 can read this file, so an older one ends with what is needed in place of a SyntaxError.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 -- pip looks at it, and a checkout on the path does not
    message = "tunegate needs Python 3.11 or newer, and this is {}.{}".format(*sys.version_info[:2])
    sys.stderr.write("tunegate: error: " + message + "\n")
    sys.exit(4)

from tunegate.cli.entry import entry

if __name__ == "__main__":
    entry()
