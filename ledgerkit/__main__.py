"""Run the command line as ``python -m ledgerkit``."""

import sys

from ledgerkit.cli import main

if __name__ == "__main__":
    sys.exit(main())
