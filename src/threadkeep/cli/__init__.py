"""The `threadkeep` command, a file for each subcommand, or for those that belong together."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """typer and rich come with the `cli` extra; without it, say how to get them rather than fail on an import."""
    if any(find_spec(name) is None for name in ("typer", "rich")):
        sys.stderr.write(
            "The threadkeep command needs an optional part; install it with: pip install 'threadkeep[cli]'\n"
        )
        sys.exit(2)
    from threadkeep.cli.app import run

    sys.exit(run(sys.argv[1:]))
