# SPDX-License-Identifier: BSD-3-Clause
"""Workers that die when a phase of a job begins: each of the phases kills one, once."""

import os
import re
import signal
from pathlib import Path

from distributed import Client, WorkerPlugin

#: Phases of fits, predictions and saves, by the names of their tasks.
PHASES = {
    "reading": r"lsgp-survey-",
    "encoding": r"lsgp-encoding-moments-",
    "cutting": r"lsgp-split-",
    "partitioning": r"lsgp-partition-",
    "settling": r"lsgp-settle-",
    "adding up": r"lsgp-summary-",
    "fetching": r"lsgp-take-",
    "indexing": r"lsgp-index-",
    "searching": r"lsgp-search-",
    "building": r"lsgp-build-",
    "routing": r"lsgp-predict\w*-.*-route-",
    "answering": r"lsgp-predict\w*-.*-own-",
    "assembling": r"lsgp-predict\w*-.*-assemble-",
    "saving": r"lsgp-save-",
}


class Fatal(WorkerPlugin):
    """Ends its process when the first task of a phase begins anywhere on the cluster."""

    name = "fatal"

    def __init__(self, folder: Path, phases: list[str]) -> None:
        self.folder, self.phases = str(folder), {name: PHASES[name] for name in phases}

    def transition(self, key, start, finish, **kwargs) -> None:
        if finish != "executing":
            return
        for name, pattern in self.phases.items():
            if re.match(pattern, str(key)) and self._is_first(name):
                os.kill(os.getpid(), signal.SIGKILL)

    def _is_first(self, name: str) -> bool:
        try:
            os.close(os.open(os.path.join(self.folder, name), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


def deadly(client: Client, folder: Path, phases: list[str]) -> None:
    """From now on, each of the phases kills a worker; the folder has a file for each that did."""
    client.register_plugin(Fatal(folder, phases))
