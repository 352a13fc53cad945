# SPDX-License-Identifier: BSD-3-Clause
"""What may come of a call: an answer, or one clear error. Everything else is a finding."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lsgp

PACKAGE = str(Path(lsgp.__file__).parent)
CLEAR = (ValueError, TypeError, lsgp.ModelFileError)


class Finding(Exception):
    """Something that should not happen."""


def is_clear(error: BaseException) -> bool:
    """Whether an error is one that a user can act on.

    It is of a kind that is documented, is raised by the package's own code or by scikit-learn's
    validation, and is a sentence.
    """
    if not isinstance(error, CLEAR):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename if frames else ""
    is_ours = last.startswith(PACKAGE) or "sklearn/utils" in last.replace("\\", "/")
    text = str(error).strip()
    return is_ours and len(text) > 15 and " " in text


class Tally:
    """Counts of outcomes, and the findings with what repeats them."""

    def __init__(self, name: str) -> None:
        self.name, self.counts, self.findings = name, Counter[str](), list[dict[str, Any]]()

    def add(self, outcome: str) -> None:
        self.counts[outcome] += 1

    def find(self, seed: int, what: str, case: str) -> None:
        self.counts["FINDING"] += 1
        self.findings.append({"tool": self.name, "seed": seed, "what": what, "case": case})
        print(f"{self.name}, seed {seed}: {what}\n    {case}", flush=True)

    def judge(self, seed: int, case: str, ask: Callable[[], str]) -> None:
        """Count what a case answers, or a clear error; note everything else."""
        try:
            self.add(ask())
        except Finding as finding:
            self.find(seed, str(finding), case)
        except Exception as error:
            if is_clear(error):
                self.add("refused clearly")
            else:
                self.find(seed, f"{type(error).__name__}: {str(error)[:200]}", case)

    def summary(self) -> str:
        listed = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        return f"{self.name}: {sum(self.counts.values()):,} cases: {listed}"

    def write(self, path: Path) -> None:
        with path.open("a") as file:
            for finding in self.findings:
                file.write(json.dumps(finding) + "\n")
