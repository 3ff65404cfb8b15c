"""`python -m tests.servers install`: make the real servers available to the tests."""

import argparse
import sys

from tests.servers.install import install


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    parser.add_argument("command", choices=["install"], help="install what is missing, say where each server is")
    parser.parse_args()
    return install()


if __name__ == "__main__":
    sys.exit(main())
