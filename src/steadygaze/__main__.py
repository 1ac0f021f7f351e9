"""`python -m steadygaze`: the same as the command `steadygaze`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
