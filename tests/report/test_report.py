# SPDX-License-Identifier: BSD-3-Clause
"""The report says what the model says, in one file that loads nothing and runs nothing else."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import fit, make_data, write_page
from tuned import regressor

from lsgp import LSGPClassifier, LSGPRegressor, __version__
from lsgp.ensemble.ensemble import Georeference
from lsgp.plotting.style import number
from lsgp.report import page as page_module
from lsgp.report import write_report
from lsgp.report.regression import extrapolation_scores

NASTY = "<script>alert(1)</script>"
NAMES = ["depth [m]", "age", "slope"]
DRAWN = ("text", "path", "use")


@pytest.fixture(scope="module")
def model():
    X, y = make_data(300, 3)
    return fit(pd.DataFrame(X, columns=NAMES), pd.Series(y, name="yield"))


def given(n=80, seed=1):
    X, y = make_data(n, 3, seed)
    return pd.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module")
def both(model, tmp_path_factory):
    """The pages without given data, and with."""
    folder = tmp_path_factory.mktemp("pages")
    pages = write_page(model, folder, title="Orchard"), write_page(model, folder, *given())
    assert os.listdir(folder) == ["r.html"]
    return pages


def test_report_is_one_file_that_loads_nothing(both):
    page = both[1]
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "srcset", "data", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:"))
    for loaded in ("http:", "https:", "@import"):
        assert loaded not in page.raw
    assert set(re.findall(r"url\(.", page.raw)) <= {"url(#"}


def test_report_names_what_was_fitted(both):
    text = both[0].text
    for said in ("Orchard", *NAMES, "yield", "300", "matern", __version__, "n_neighbors=20"):
        assert said in text
    assert "Nothing was tuned" in text


def test_scores_are_those_of_leave_one_out_and_of_the_given_data(model, both):
    alone, page = both
    X, y = given()
    for found in (model.loo().calibration, model.calibration(X, y)):
        assert f'data-v="{found.rmse!r}"' in page.raw
        assert f'data-v="{found.crps!r}"' in page.raw
    header = page.part('class="tiles"', "<section")
    assert number(model.calibration(X, y).rmse) in header
    assert "RMSE (given data, yield)" in header
    assert ">80<" in header
    assert "RMSE (leave-one-out, yield)" in alone.part('class="tiles"', "<section")


def test_every_chart_is_there(model, both):
    _, page = both
    # Four of the leave-one-out predictions, four of the given data, importance, three
    # effects, extrapolation.
    assert len(set(page.charts)) == len(page.charts) == 13
    points = [a for a in page.of("use") if "data-i" in a]
    assert len(points) == 2 * (300 + 80)
    assert sum(label.startswith("Effect of ") for label in page.charts) == 3
    found = model.importance()
    for j in found.order:
        assert f"{found.names[j]}: {number(found.values[j], 3)} ±" in page.raw


def test_pictures_have_ids_of_their_own_and_the_colors_of_the_page(both):
    _, page = both
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    used = [a["href"].removeprefix("#") for a in page.of("use")]
    used += [a["clip-path"][5:-1] for _, a in page.elements if "clip-path" in a]
    assert set(used) <= set(ids)
    # A color that stays the same is one that cannot be read in the dark.
    styles = {a["style"] for tag, a in page.elements if tag in DRAWN and "style" in a}
    assert not [each for each in styles if re.search("#[0-9a-f]{6}", each)]
    sheet = (Path(page_module.__file__).parent / "templates/page.css").read_text("utf-8")
    for name in re.findall(r"var\((--\w+)\)", " ".join(styles)):
        assert sheet.count(f"{name}: ") == 4  # light, dark by the system, dark by the button, paper


def test_the_same_model_has_the_same_pictures(model, both, tmp_path):
    pages = (both[0].raw, write_page(model, tmp_path, title="Orchard").raw)
    one, again = (re.sub(r"<header.*?</header>", "", raw, flags=re.DOTALL) for raw in pages)
    assert one == again


@pytest.mark.parametrize("d", [1, 2])
def test_models_of_few_inputs_show_their_predictions(d, tmp_path):
    X, y = make_data(120, d)
    page = write_page(fit(X, np.column_stack([y, -y])), tmp_path)
    assert any(a.get("id") == "predictions" for a in page.of("section"))
    # Two targets, each with a mean and a deviation, and the density; each with its color bar.
    assert len(page.of("image")) == (10 if d == 2 else 0)
    curves = [label for label in page.charts if label.endswith("mean, bands and data")]
    assert len(curves) == (0 if d == 2 else 2)


def test_maps_have_the_shape_of_the_ground_and_units(tmp_path):
    X = np.random.default_rng(0).uniform(size=(200, 3)) * [800.0, 400.0, 1.0]
    fitted = fit(X, X[:, 0])
    known = Georeference(0, 1, 'LOCAL_CS["field"]', ("mg/kg",))
    fitted.ensemble_ = replace(fitted.ensemble_, georeference=known)
    page = write_page(fitted, tmp_path)
    shapes = []
    for image in page.of("image"):
        width, height = float(image["width"]), float(image["height"])
        matrix = re.search(r"matrix\(([^)]*)\)", image.get("transform", ""))
        if matrix:
            across, _, _, down, *_ = map(float, re.split("[ ,]+", matrix[1].strip()))
            width, height = width * abs(across), height * abs(down)
        shapes.append(height / width)
    assert len(shapes) == 6  # each map has the bar of its colors
    np.testing.assert_allclose(shapes[::2], np.ptp(X[:, 1]) / np.ptp(X[:, 0]), atol=0.01)
    for said in ("y [mg/kg]</text>", "rows per cell</text>", "Mean of y at x2 = 0."):
        assert said in page.raw


def test_names_from_the_data_are_text_and_nothing_else(tmp_path):
    X, y = make_data(60, 2)
    names = [NASTY, "\"'>&amp; ü 漢字 \u2028 ]]> <!--"]
    frame = pd.DataFrame(X, columns=names)
    model = fit(frame, pd.Series(y, name="</script><img src=x onerror=alert(2)>"))
    page = write_page(model, tmp_path, frame, y, title="<b>bold</b>")
    # The data of the tooltips, and the page's own script.
    assert [a.get("type") for a in page.of("script")] == ["application/json", None]
    assert page.of("img") == page.of("b") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)
    assert NASTY in page.text
    assert "<b>bold</b>" in page.text
    content = page.part('id="observations">', "</script>")
    observed = json.loads(content)["loo-0"]["columns"][1]
    assert observed == "observed </script><img src=x onerror=alert(2)>"
    assert "<" not in content


def test_rows_that_are_missing_known_or_too_many_are_counted(model, both, tmp_path):
    X, y = given()
    X.iloc[3, 1] = np.nan
    y[5] = np.nan
    page = write_page(model, tmp_path, X, y)
    assert "2 rows with missing values left out." in page.text
    X.iloc[:, 0] = np.nan
    page = write_page(model, tmp_path, X, y)
    assert "There is no row without missing values." in page.text
    page = write_page(model, tmp_path, *given(), n_points=50)
    assert "A random sample of 50 of 300 training rows." in page.text
    assert "A random sample of 50 of 80 rows." in page.text
    known = make_data(300, 3)
    page = write_page(model, tmp_path, pd.DataFrame(known[0], columns=NAMES), known[1])
    assert "300 of these 300 rows are training rows" in page.text
    assert "are training rows" not in both[1].text


def test_queries_without_targets_show_where_they_extrapolate(model, tmp_path):
    X, _ = given(200)
    X.iloc[:4, 2] = 9.0
    X.iloc[4] = 1e3  # beyond the last bar
    page = write_page(model, tmp_path, X)
    flagged = np.sum(model.explain(X).is_extrapolating)
    assert flagged >= 5
    assert f"{100 * flagged / 200:.1f} % of 200 given rows ({flagged}) are flagged" in page.text
    assert "Given data" not in page.text
    chart = page.part("Histogram of the scores of extrapolation", "</svg>")
    tips = re.findall(r'data-tip="([^"]*) rows"', chart)
    counts = [int(tip.rpartition(": ")[2].replace(",", "")) for tip in tips]
    assert sum(counts) == 200
    assert counts[-1] >= 1


def test_scores_of_extrapolation_are_those_of_the_explanations(model):
    X, _ = given(30)
    found, expected = extrapolation_scores(model, X.to_numpy()), model.explain(X).extrapolation
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_worst_predictions_are_explained_without_their_own_row(model, both):
    loo = model.loo()
    worst = int(np.argmax(np.abs(loo.residuals)))
    table = both[0].part('<table class="cases">', "</tbody>")
    assert f'data-v="{worst}"' in table
    assert f"row {worst:,}<" not in table
    frame = pd.DataFrame(make_data(300, 3)[0][[worst]], columns=NAMES)
    explained = model.explain(frame, exclude=[worst])
    np.testing.assert_allclose(explained.predicted.mean[0], loo.predicted.mean[worst])
    strongest = np.argmax(np.abs(explained.contributions[0]))
    assert f"row {explained.rows[0, strongest]:,}<" in table


@pytest.mark.parametrize("exclude", [[0], [0.0, 1.0], [0, 300], [-2, 0]])
def test_rows_to_explain_without_must_be_training_rows(model, exclude):
    with pytest.raises(ValueError, match="does not name one of the 300 training rows"):
        model.explain(given(2)[0], exclude=exclude)


def test_tuning_lists_its_candidates_and_weights_add_to_a_hundred(tmp_path):
    # Tuning chooses everything, integrated GPs among it.
    settings = {"effort__n_models": 3, "effort__n_points": 100, "n_neighbors": "auto"}
    model = regressor(**settings).fit(*make_data(150, 2))
    page, ensemble = write_page(model, tmp_path), model.ensemble_
    table = page.part('<table id="candidates"', "</table>")
    assert table.count("<tr") == 1 + len(model.tuning_.candidates)
    assert table.count('class="chosen"') == len(model.tuning_.chosen)
    chart = page.part("Losses of the candidates", "</svg>")
    tips = re.findall(r'data-tip="([^"]*)"', chart)
    assert len(tips) == len(model.tuning_.candidates)
    weights = [re.search(r"weight (.*) %", tip)[1] for tip in tips]
    assert sum(weight != "0.0" for weight in weights) == len(model.tuning_.chosen)
    found = re.findall(r">(\d+\.\d) %<", page.part('id="models"', "</table>"))
    # Models that are integrated over hyperparameters have one row.
    assert len(found) == len(ensemble.chosen) + (len(ensemble.integrated) > 0)
    assert sum(map(float, found)) == pytest.approx(100.0)


X40, Y40 = make_data(40, 2)
ODD = {
    "constant target": (X40, np.full(40, 3.0), {}),
    "constant input": (X40 * [1.0, 0.0] + [0.0, 7.0], Y40, {}),
    "two rows": (X40[:2], Y40[:2], {}),
    "duplicates": (np.repeat(X40[:1], 40, axis=0), Y40, {}),
    "huge": (1e150 * X40, 1e150 * Y40, {}),
    "fixed bandwidth": (X40, Y40, {"localizer__bandwidth": 2.0, "input_transform": None}),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_models_get_a_report_too(case, tmp_path):
    X, y, settings = ODD[case]
    model = LSGPRegressor().set_params(objective=None, **settings).fit(X, y)
    page = write_page(model, tmp_path, X, y)
    assert "What was fitted" in page.text
    assert not re.search(r' (x|y|d|width)="[^"]*(nan|inf)', page.raw)


def test_a_failure_leaves_the_old_file_and_nothing_else(model, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(model, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


def test_wrong_arguments_are_refused_with_a_remedy(model, tmp_path, monkeypatch):
    X, y = given()
    for error, said, settings in (
        (ValueError, "y was given without X", {"y": y}),
        (ValueError, r"y has shape \(79,\), but X has 80 rows", {"X": X, "y": y[1:]}),
        (ValueError, "target_names has 2 names", {"target_names": ["a", "b"]}),
    ):
        with pytest.raises(error, match=said):
            write_report(model, tmp_path / "r.html", **settings)
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        write_report(model, tmp_path / "none" / "r.html")
    for name in ("matplotlib", "jinja2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            with pytest.raises(ImportError, match=rf"needs {name}, which is not.*'lsgp\[plot\]'"):
                write_report(model, tmp_path / "r.html")
    assert os.listdir(tmp_path) == []


def test_importing_the_report_imports_no_extra():
    code = (
        "import sys, sklearn.base, sklearn.gaussian_process; before = set(sys.modules); "
        "import lsgp.report; "
        "print(*{'jinja2', 'matplotlib', 'polars', 'rich'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_page_of_classes_has_its_sections_and_escapes_labels(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y = np.where(X[:, 0] > 0.1, "right", "<b>left")
    model = fit(X, y, LSGPClassifier)
    page = write_page(model, tmp_path, X[:50], y[:50], title="Sides")
    found = [a["id"] for a in page.of("section")]
    assert found == [
        *("quality", "decisions", "doubtful", "wrong"),
        *("importance", "fitted", "tuning"),
    ]
    assert "Given data" in page.raw
    assert "&lt;b&gt;left" in page.raw
    assert page.of("b") == []
    of_three = fit(np.column_stack([X, X[:, 0]]), y, LSGPClassifier)
    assert 'id="decisions"' not in write_page(of_three, tmp_path).raw


def test_page_of_classes_counts_rows_as_it_is_told_and_names_every_member(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=70) > 0, "right", "left")
    settings = {"kernel": "matern32", "input_transform": "standardize"}
    model = LSGPClassifier().set_params(random_state=0, **settings).fit(X, y)
    assert model.ensemble_.classification.laplace
    page = write_page(model, tmp_path, count_from=1)
    assert page.raw.count("Rows are counted from 1.") == 2
    models = page.part("<h3>Models</h3>", "</table>")
    assert "of log odds" in models
    shares = [float(share) for share in re.findall(r">([\d.]+) %<", models)]
    assert sum(shares) == pytest.approx(100.0, abs=1e-9)
