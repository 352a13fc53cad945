# SPDX-License-Identifier: BSD-3-Clause
"""``python -m lsgp`` is the command line."""

from lsgp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
