# SPDX-License-Identifier: BSD-3-Clause
"""What is installed with the package, and what works without polars."""

import subprocess
import sys
import tomllib
from email.parser import Parser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lsgp import LSGPRegressor
from lsgp.cli import NO_POLARS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run_python(code, *arguments, **settings):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False, **settings,
    )  # fmt: skip


# -- dependencies --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_free_threaded", [False, True])
def test_polars_is_required_except_by_free_threaded_python(tmp_path, is_free_threaded):
    pytest.importorskip("scikit_build_core")
    code = (
        "import sys, sysconfig; "
        f"sysconfig.get_config_vars()['Py_GIL_DISABLED'] = {int(is_free_threaded)}; "
        "from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare; "
        "prepare(sys.argv[1])"
    )
    result = run_python(code, tmp_path, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    (path,) = tmp_path.glob("*.dist-info/METADATA")
    metadata = Parser().parsestr(path.read_text(encoding="utf-8"))
    required = [name for name in metadata.get_all("Requires-Dist") if "extra ==" not in name]
    listed = PROJECT["tool"]["dynamic-metadata"][0]
    expected = listed["always"] + ([] if is_free_threaded else listed["with_gil"])
    assert sorted(required) == sorted(expected)
    assert "numpy>=1.26" in required
    assert is_free_threaded == ("polars>=1.31" not in required)


def test_wheels_are_built_for_free_threaded_python_and_the_core_declares_it():
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert {"cp313t-*", "cp314t-*"} <= set(wheels["build"].split())
    assert "cpython-freethreading" in wheels["enable"]
    assert "FREE_THREADED" in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")


# -- without polars ------------------------------------------------------------------------------

WITHOUT_POLARS = "import sys; sys.modules['polars'] = None; "


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain"])
def test_commands_that_read_tables_name_the_remedy(command):
    arguments = {"fit": ["a.csv", "--target", "y", "-o", "m.lsgp"]}
    given = arguments.get(command, ["m.lsgp", "a.csv"]) + ["-o", "o.csv"] * (command == "predict")
    code = WITHOUT_POLARS + "from lsgp.cli import main; sys.exit(main(sys.argv[1:]))"
    result = run_python(code, command, *given)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"lsgp {command}: {NO_POLARS}\n"


def test_the_library_info_and_reports_need_no_polars(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["x", "z"])
    LSGPRegressor(objective=None).fit(frame, frame["x"]).save(tmp_path / "m.lsgp")
    code = WITHOUT_POLARS + (
        "from lsgp import LSGPRegressor; from lsgp.cli import main; "
        "from lsgp.report import write_report; import pandas as pd; "
        "path, page = sys.argv[1:]; "
        "assert main(['info', path]) == 0; "
        "model = LSGPRegressor.load(path); "
        "print(model.predict(pd.DataFrame({'x': [0.5], 'z': [0.5]}))); "
        "write_report(model, page)"
    )
    result = run_python(code, tmp_path / "m.lsgp", tmp_path / "page.html")
    assert result.returncode == 0, result.stderr
    assert "</html>" in (tmp_path / "page.html").read_text(encoding="utf-8")
