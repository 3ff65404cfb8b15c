"""Run the agent frameworks' own tests with our adapters: `python -m tests.suites FOLDER [--only NAME] [--on DATABASE]`.

FOLDER holds unpacked source distributions or checkouts of the frameworks. Prints, for each suite and database, how many
tests passed, and names each that failed with whose it is. The exit code is 1 when one is ours, or a suite is missing.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.suites.running import PLACES, Places, SuiteMissing, run
from tests.suites.suites import SUITES


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the frameworks' sources lie")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], action="append", help="only this suite")
    parser.add_argument("--on", choices=PLACES, action="append", help="only on this database")
    arguments = parser.parse_args()
    failed = False
    with ExitStack() as stack:
        places = Places(stack)
        for suite in SUITES:
            if arguments.only and suite.name not in arguments.only:
                continue
            try:
                for outcome in run(suite, arguments.folder, places, arguments.on or PLACES):
                    print(outcome, flush=True)
                    failed = failed or bool(outcome.ours)
            except SuiteMissing as missing:
                print(missing, flush=True)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
