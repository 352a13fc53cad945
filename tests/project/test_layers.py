# SPDX-License-Identifier: BSD-3-Clause
"""Each module imports only rooms before its own, and `import lsgp` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from architecture_picture import PICTURE, draw
from import_graph import ROOT, imported_modules, module_of, room_of, source_files

#: The rooms below tuning: it and those above may import all of them.
MODELS = {"method", "compute", "search", "backends", "solvers", "inputs"}
#: The rooms of the house, from the bottom up, each with those that it may import.
#: A room's own modules may import each other; no two of them in a circle (tested below).
ROOMS = {
    "_core": set(),
    "method": set(),
    "compute": set(),
    "search": {"_core", "compute", "method"},
    "backends": {"_core", "method", "compute", "search"},
    "solvers": {"method", "compute", "search", "backends"},
    "inputs": {"method", "compute"},
    "tuning": MODELS,
    "ensemble": {*MODELS, "tuning"},
    "storage": {*MODELS, "tuning", "ensemble"},
    "distributed": {*MODELS, "tuning", "ensemble", "storage"},
}
#: Around those: the estimators, and what is made for people and machines. Each may import every
#: room, and the names of this list before its own.
AROUND = ["estimators", "lsgp", "metrics", "maps", "botorch"]
AROUND += ["plotting", "report", "cli", "__main__"]
LEVEL = {name: level for level, name in enumerate([*ROOMS, *AROUND])}

#: Modules that `import lsgp` must not import: extras, and what only the command line needs.
NOT_AT_IMPORT = {
    "botorch", "cupy", "dask", "distributed", "faiss", "gpytorch", "matplotlib", "pandas",
    "polars", "pyproj", "rasterio", "rich", "torch", "xarray",
}  # fmt: skip

FILES = source_files()


def allowed(room: str) -> set[str]:
    if room in ROOMS:
        return ROOMS[room] | {room}
    return {*ROOMS, *AROUND[: AROUND.index(room) + 1]}


def imports_of(path: Path) -> list[list[str]]:
    source = path.read_text(encoding="utf-8")
    return [list(name) for name in imported_modules(source, module_of(path))]


def test_modules_import_only_rooms_before_their_own():
    for room, others in ROOMS.items():
        assert all(LEVEL[other] < LEVEL[room] for other in others)
    for path in FILES:
        room = room_of(module_of(path))
        assert room in LEVEL, "give those that are new their places in ROOMS or AROUND"
        for name in imports_of(path):
            assert room_of(name) in allowed(room), f"{room} imports {'.'.join(name)}"


def test_no_two_modules_import_each_other():
    files = {".".join(module_of(path)).removesuffix(".__init__"): path for path in FILES}
    edges = {
        name: {
            found
            for used in imports_of(path)
            if (found := ".".join(used)) in files and found != name
        }
        for name, path in files.items()
    }
    # Whatever imports nothing that is left is taken away; what stays in the end is a circle.
    while free := {name for name, used in edges.items() if not used & edges.keys()}:
        for name in free:
            del edges[name]
    assert not edges


def test_every_room_says_in_its_docstring_what_it_may_import():
    for room in ROOMS:
        source = (ROOT / room / "__init__.py").read_text(encoding="utf-8")
        assert "imports" in (ast.get_docstring(ast.parse(source)) or "").lower(), room


def test_the_house_has_few_doors():
    assert len([path for path in ROOT.iterdir() if path.name != "__pycache__"]) <= 21


def test_imports_are_found_in_all_their_forms():
    for source, module, expected in (
        ("import lsgp.tuning", "lsgp.cli", {"lsgp.tuning"}),
        ("from . import kernels", "lsgp.method.losses", {"lsgp.method.kernels"}),
        ("from .. import __version__", "lsgp.estimators.regressor", {"lsgp"}),
        ("from lsgp import LSGPRegressor", "lsgp.cli.demo", {"lsgp"}),
        ("from .._core import core", "lsgp.backends.cpu", {"lsgp._core"}),
        ("from . import reference", "lsgp.backends.__init__", {"lsgp.backends.reference"}),
        ("from .metrics import crps_scorer", "lsgp.__init__", {"lsgp.metrics"}),
        ("def f():\n    from ..cli import main", "lsgp.method.kernels", {"lsgp.cli"}),
        ("import numpy as np\nfrom scipy import stats", "lsgp.method.kernels", set()),
    ):
        found = imported_modules(source, module.split("."))
        assert {".".join(name) for name in found} == expected, source


def test_picture_of_the_architecture_is_that_of_the_code():
    assert PICTURE.read_text(encoding="utf-8") == draw(), "run: python docs/architecture_picture.py"


def test_importing_lsgp_imports_no_extra():
    # What scikit-learn imports by itself (pandas, where it is installed) is not ours.
    code = (
        "import sys, sklearn.base, sklearn.gaussian_process; before = set(sys.modules); "
        "import lsgp; lsgp.LSGPRegressor; "
        f"print(*sorted({NOT_AT_IMPORT!r} & (set(sys.modules) - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == []
