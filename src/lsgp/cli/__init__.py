# SPDX-License-Identifier: BSD-3-Clause
"""The command line ``lsgp``: tables in and out.

`parser` says what can be typed; the module of a command is imported when it is run, and has a
function ``run_...`` for it. Errors are one line on stderr and exit code 2; Ctrl-C is exit code 130.

`table` is what a table is, `csv_table` reads CSV, and `tables` opens files for reading and writing.
`models` loads models, `roles` says what columns are to them, and `tasks` has what differs between
models of numbers and of labels.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module

from lsgp.cli.console import Voice, handled, one_line
from lsgp.cli.errors import CommandError
from lsgp.cli.parser import make_parser

__all__ = ["main"]

#: Where a command is, if not in the module of its name.
MODULES = {"evaluate": "predict", "report": "predict", "map": "maps", "fill": "maps"}

NO_POLARS = (
    "Tables are read with polars, which is not installed. Install it with: pip install 'lsgp[cli]' "
    "(for free-threaded Python, where that needs a Rust compiler, conda-forge has polars built). "
    "In Python, lsgp needs no polars."
)
NO_DASK = "Clusters need Dask, which is not installed: pip install 'lsgp[distributed]'."

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
EXIT_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Examples
    --------
    >>> from lsgp.cli import main
    >>> main(["predict", "no-such-model.lsgp", "new.csv", "-o", "out.csv"])
    2
    """
    return run_program(make_parser(), _run_command, arguments)


def _run_command(options: argparse.Namespace, voice: Voice) -> None:
    # The module of clusters needs an extra.
    is_on_cluster = getattr(options, "scheduler", None) is not None
    name = "cluster" if is_on_cluster else MODULES.get(options.command, options.command)
    run = getattr(import_module(f"lsgp.cli.{name}"), f"run_{options.command}")
    voice.started = time.perf_counter()
    run(options, voice)


def run_program(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace, Voice], None],
    arguments: Sequence[str] | None = None,
) -> int:
    """Parse the arguments, run the program, and return its exit code; errors are one line."""
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    voice = Voice(options)
    try:
        with handled(signal.SIGTERM, _terminate), warnings.catch_warnings():
            voice.listen_to_warnings()
            run(options, voice)
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("lsgp: interrupted\n")
        return EXIT_INTERRUPTED
    except SystemExit as stop:
        return int(stop.code or 0)
    except BrokenPipeError:
        # Whoever read stdout has enough, as in `lsgp evaluate ... | head`. The interpreter
        # flushes stdout once more when it ends, which must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:
        message = _explain(error)
        if message is None:
            raise
        name = " ".join(filter(None, [parser.prog, getattr(options, "command", None)]))
        sys.stderr.write(f"{name}: {message}\n")
        return EXIT_ERROR


def _terminate(*_: object) -> None:
    """Let SIGTERM end the command like an exception, so that temporary files are removed."""
    raise SystemExit(EXIT_TERMINATED)


def _explain(error: Exception) -> str | None:
    """The error in one line, or None if it is ours, and its traceback is of use."""
    if isinstance(error, CommandError):
        return one_line(str(error))
    if isinstance(error, MemoryError):
        return "There is not enough memory."
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return one_line(f"{error.filename}: {reason}" if error.filename else reason)
    if isinstance(error, ImportError) and error.name == "polars":
        return NO_POLARS
    if isinstance(error, ImportError) and error.name in ("dask", "distributed"):
        return NO_DASK
    from lsgp.backends.cuda.device import DeviceError  # its import takes a moment

    # LinAlgError is a ValueError; ImportError names an extra that is not installed.
    if isinstance(error, ValueError | TypeError | ImportError | DeviceError):
        return one_line(str(error)) or None
    return None
