"""`python -m threadkeep.cli`, where the console script is not on the PATH."""

from threadkeep.cli import main

main()
