# SPDX-License-Identifier: BSD-3-Clause
"""``python -m fuzz``: hostile fits, damaged files, interrupts and kills, with a count of each."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from fuzz import damage, hostile, stops
from fuzz.outcome import Tally

#: Share of the time that each tool has.
TOOLS = {
    "fits": (hostile.run, 0.6),
    "files": (damage.run, 0.2),
    "interrupts": (stops.interrupt, 0.1),
    "kills": (stops.kill, 0.1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all tools together")
    parser.add_argument("--seed", type=int, default=0, help="of the first case of each tool")
    parser.add_argument("--cases", type=int, help="so many of each tool, however long they take")
    parser.add_argument("--only", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--findings", type=Path, help="append findings to this file")
    options = parser.parse_args()
    tallies = []
    total = sum(TOOLS[name][1] for name in options.only)
    for name in options.only:
        run, share = TOOLS[name]
        tally, seed = Tally(name), options.seed
        end = time.monotonic() + 60.0 * options.minutes * share / total
        while seed - options.seed < options.cases if options.cases else time.monotonic() < end:
            run(seed, tally)
            seed += 1
        print(tally.summary(), flush=True)
        if options.findings:
            tally.write(options.findings)
        tallies.append(tally)
    return int(any(tally.findings for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
