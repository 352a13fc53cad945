# SPDX-License-Identifier: BSD-3-Clause
"""``lsgp demo``: the toy example of the paper, as `lsgp.reproduce.demo` runs it."""

from __future__ import annotations

import argparse

from lsgp.cli.console import Voice
from lsgp.reproduce import demo


def run(options: argparse.Namespace, voice: Voice) -> None:
    arguments: list[str] = []
    for name, value in vars(options).items():
        if name == "command":
            continue
        arguments.append(f"--{name.replace('_', '-')}")
        if value is not True:
            arguments += map(str, value if isinstance(value, list) else [value])
    demo.main(arguments)
