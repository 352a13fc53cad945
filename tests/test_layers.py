# SPDX-License-Identifier: BSD-3-Clause
"""Each module imports only layers below its own, and `import lsgp` stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lsgp

#: From the bottom up. A module may import from the lines above its own, never from its own line:
#: modules of one line do not know each other.
LAYERS = [
    {"kernels", "localizers", "transforms", "datasets", "blocks", "predictive", "losses", "_core"},
    {"frames", "fitted_view"},
    {"local_problem", "sklearn_kernels", "training_rows", "combination", "diagnostics"},
    {"neighbors", "specification", "parameters"},
    {"backends", "growing_index"},
    {"local_solves", "prior", "calibration", "imitation", "evidence", "tuning_plan"},
    {"shared_system"},
    {"objectives", "fitted_model", "tuning_result"},
    {"mixing", "comparing"},
    {"optimizing"},
    {"tuning", "predictions", "storage"},
    {"explanation", "gradients", "updates"},
    {"representation"},
    {"regressor", "classifier"},
    {"lsgp"},  # the package's own __init__: the public names
    {"picture_facts"},
    {"distributed", "report", "plotting"},
    {"demo"},
    {"reproduce"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

#: Modules that `import lsgp` must not import: extras, and what only the command line needs.
NOT_AT_IMPORT = {"cupy", "dask", "distributed", "faiss", "matplotlib", "pandas", "polars", "torch"}

ROOT = Path(lsgp.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def module_of(path: Path) -> list[str]:
    """The dotted name of a file as a list, with ``__init__`` for a package's own file."""
    return ["lsgp", *path.relative_to(ROOT).with_suffix("").parts]


def layer_of(module: list[str]) -> str:
    return module[1] if len(module) > 1 and module[1] != "__init__" else "lsgp"


def imported_modules(source: str, module: list[str]) -> set[tuple[str, ...]]:
    """The modules of lsgp that ``source`` imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = module[: -node.level] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            # `from . import x`: x is a module if it is a known layer, else a name of the package.
            is_root = base == ["lsgp"]
            for alias in node.names:
                found.add((*base, alias.name) if is_root and alias.name in LEVEL else tuple(base))
    return {name for name in found if name[0] == "lsgp"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: ".".join(module_of(path)))
def test_module_imports_only_layers_below(path):
    own = layer_of(module_of(path))
    assert own in LEVEL, f"{path.name} is new: give it its place in LAYERS"
    for name in imported_modules(path.read_text(encoding="utf-8"), module_of(path)):
        other = layer_of(list(name))
        assert other in LEVEL, f"lsgp.{other} is new: give it its place in LAYERS"
        below = other == own or LEVEL[other] < LEVEL[own]
        assert below, f"{own} imports {'.'.join(name)}, which is not below it"


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("import lsgp.tuning", "lsgp.cli", {"lsgp.tuning"}),
        ("from . import kernels", "lsgp.tuning", {"lsgp.kernels"}),
        ("from . import __version__", "lsgp.cli", {"lsgp"}),
        ("from lsgp import LSGPRegressor", "lsgp.demo", {"lsgp"}),
        ("from .._core import core", "lsgp.backends.cpu", {"lsgp._core"}),
        ("from . import reference", "lsgp.backends.__init__", {"lsgp.backends"}),
        ("from .regressor import LSGPRegressor", "lsgp.__init__", {"lsgp.regressor"}),
        ("def f():\n    from .cli import main", "lsgp.kernels", {"lsgp.cli"}),
        ("import numpy as np\nfrom scipy import stats", "lsgp.kernels", set()),
    ],
)
def test_imports_are_found_in_all_their_forms(source, module, expected):
    found = imported_modules(source, module.split("."))
    assert {".".join(name) for name in found} == expected


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
