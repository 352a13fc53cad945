# SPDX-License-Identifier: BSD-3-Clause
"""What is installed with the package, and what works without its extras."""

import os
import re
import subprocess
import sys
import tomllib
from functools import partial
from importlib.metadata import files, requires
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lsgp import LSGPRegressor
from lsgp.cli import NO_DASK, NO_POLARS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


RUN = "import sys; from lsgp.cli import main; sys.exit(main(sys.argv[1:]))"


def run_python(code, *arguments, options=(), **settings):
    return subprocess.run(
        [sys.executable, *options, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False, **settings,
    )  # fmt: skip


# -- dependencies --------------------------------------------------------------------------------


def test_a_plain_install_brings_no_libraries_of_tables_or_pictures():
    required = {re.match(r"[\w-]+", line)[0] for line in requires("lsgp") if "extra ==" not in line}
    assert required == {"joblib", "narwhals", "numpy", "scikit-learn", "scipy", "threadpoolctl"}
    assert "dynamic" not in PROJECT["project"]


def test_all_is_every_extra_but_torch_and_cupy():
    extras = dict(PROJECT["project"]["optional-dependencies"])
    (everything,) = extras.pop("all")
    named = set(re.fullmatch(r"lsgp\[(.*)\]", everything)[1].split(","))
    assert extras.keys() - named == {"botorch", "cuda12", "cuda13"}


def test_nothing_but_the_package_is_installed():
    tops = {path.parts[0] for path in files("lsgp") if path.parts[0] != ".."}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"lsgp"}


def test_wheels_are_built_for_free_threaded_python_and_the_core_declares_it():
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert {"cp313t-*", "cp314t-*"} <= set(wheels["build"].split())
    assert "cpython-freethreading" in wheels["enable"]
    assert "FREE_THREADED" in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")


# -- a plain install -------------------------------------------------------------------------------


def requirements(name):
    """A distribution and all that it requires, without extras."""
    found, left = set(), [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            lines = [line for line in requires(one) or [] if ";" not in line]
            left += [re.match(r"[\w.-]+", line)[0].lower() for line in lines]
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Runs Python where nothing can be imported but lsgp and what it requires."""
    folder = tmp_path_factory.mktemp("plain")
    for name in requirements("lsgp"):
        for path in files(name):
            if path.parts[0] != ".." and not (folder / path.parts[0]).exists():
                top = [path.locate(), *path.locate().parents][len(path.parts) - 1]
                try:
                    (folder / path.parts[0]).symlink_to(top)
                except OSError:
                    pytest.skip("this system makes no symbolic links")

    # -S: without the folder site-packages.
    env = {**os.environ, "PYTHONPATH": str(folder)}
    return partial(run_python, options=["-S"], env=env)


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "report"])
def test_commands_that_read_tables_name_the_remedy(plain, command):
    arguments = {"fit": ["a.csv", "--target", "y", "-o", "m.lsgp"]}
    given = arguments.get(command, ["m.lsgp", "a.csv"]) + ["-o", "o.csv"] * (command == "predict")
    result = plain(RUN, command, *given)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"lsgp {command}: {NO_POLARS}\n"
    assert "pip install 'lsgp[cli]'" in NO_POLARS


def test_maps_and_clusters_name_the_remedy(plain):
    result = plain(RUN, "map", "m.lsgp", "--like", "a.tif", "-o", "b.tif")
    assert result.returncode == 2
    assert "pip install 'lsgp[maps]'" in result.stderr
    without_dask = "import sys; sys.modules['dask'] = None;"
    result = run_python(f"{without_dask} import lsgp.distributed")
    assert result.returncode == 1
    assert "Install them with: pip install 'lsgp[distributed]'" in result.stderr
    arguments = ["fit", "a", "--target", "y", "-o", "m", "--scheduler", "local"]
    result = run_python(f"{without_dask} {RUN}", *arguments)
    assert (result.returncode, result.stderr) == (2, f"lsgp fit: {NO_DASK}\n")


def test_a_plain_install_fits_predicts_saves_and_runs_the_demo(plain, tmp_path):
    code = (
        "import sys; import numpy as np; from lsgp import LSGPRegressor; "
        "from lsgp.cli import main; "
        "from lsgp.compute import progress; progress.APPEARS_AFTER = 0.0; "
        "sys.stderr.isatty = lambda: True; "
        "X = np.random.default_rng(0).uniform(size=(60, 2)); "
        "model = LSGPRegressor(effort='fast', random_state=0, verbose=1).fit(X, X[:, 0]); "
        "assert abs(model.predict([[0.5, 0.5]])[0] - 0.5) < 0.05; "
        "model.save('m.lsgp'); "
        "sys.exit(main(['info', 'm.lsgp']) or main(['demo', '--sizes', '40', '--draws', '1', "
        "'--no-plot']))"
    )
    result = plain(code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Tuning" in result.stderr
    assert "100%" in result.stderr
    assert "LSGP better" in result.stdout


def test_a_report_names_the_remedy(plain, tmp_path):
    code = (
        "from lsgp import LSGPRegressor; from lsgp.report import write_report; "
        "write_report(LSGPRegressor(objective=None).fit([[0], [1], [2]], [0, 1, 0]), 'page.html')"
    )
    result = plain(code, cwd=tmp_path)
    assert "needs matplotlib and jinja2, which are not installed." in result.stderr
    assert "pip install 'lsgp[plot]'" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_templates_of_the_report_are_installed():
    installed = {path.name for path in files("lsgp") if path.parts[1:3] == ("report", "templates")}
    assert installed == {path.name for path in (ROOT / "src/lsgp/report/templates").iterdir()}


def test_reports_of_named_inputs_need_no_library_of_frames(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["x", "z"])
    LSGPRegressor(objective=None).fit(frame, frame["x"]).save(tmp_path / "m.lsgp")
    code = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "for name in ('pandas', 'polars', 'pyarrow'): sys.modules[name] = None\n"
        "from lsgp import LSGPRegressor; from lsgp.report import write_report\n"
        "write_report(LSGPRegressor.load('m.lsgp'), 'page.html')"
    )
    result = run_python(code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
