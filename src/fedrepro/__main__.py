"""`python -m fedrepro`: the command line without its entry point."""

import sys

from fedrepro.cli import main

sys.exit(main())
