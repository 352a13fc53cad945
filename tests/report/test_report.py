# SPDX-License-Identifier: BSD-3-Clause
"""The report says what the model says, in one file that loads nothing and runs nothing else."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tuned import regressor

from lsgp import LSGPRegressor, __version__
from lsgp.plotting.style import number
from lsgp.report import page as page_module
from lsgp.report import write_report
from lsgp.report.regression import extrapolation_scores

NASTY = "<script>alert(1)</script>"
VOID = {"meta", "link", "br"}
SIDES = ("width", "height")
DRAWN = ("text", "path", "use")


class Page(HTMLParser):
    """Elements with their attributes; fails on elements that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def charts(self):
        """What is said of the pictures to those who do not see them."""
        return [a["aria-label"] for a in self.of("svg") if a.get("class") == "chart"]

    @property
    def text(self):
        return " ".join("".join(self.texts).split())


def make_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, np.sin(5 * X).sum(axis=1) + 0.1 * rng.normal(size=n)


def sides_of_images(text):
    """Widths and heights of the pictures in a page, as they are drawn."""
    sides = []
    for found in re.findall(r"<image[^>]*>", text):
        width, height = (float(re.search(rf'{k}="([\d.]+)"', found)[1]) for k in SIDES)
        scale = re.search(r'transform="matrix\(([^)]*)\)"', found)
        if scale:
            numbers = [float(each) for each in re.split("[ ,]+", scale[1].strip())]
            width, height = width * abs(numbers[0]), height * abs(numbers[3])
        sides.append((width, height))
    return sides


def fit(X, y, **settings):
    return LSGPRegressor().set_params(objective=None, n_neighbors=20, **settings).fit(X, y)


def read(path):
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model():
    X, y = make_data(300, 3)
    return fit(pd.DataFrame(X, columns=["depth [m]", "age", "slope"]), pd.Series(y, name="yield"))


def given(n=80, seed=1):
    X, y = make_data(n, 3, seed)
    return pd.DataFrame(X, columns=["depth [m]", "age", "slope"]), y


def test_report_is_one_file_that_loads_nothing(model, tmp_path):
    path = tmp_path / "report.html"
    write_report(model, path, *given())
    assert os.listdir(tmp_path) == ["report.html"]
    page = read(path)
    for _, attributes in page.elements:
        for name in ("src", "href", "action", "srcset", "data", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:"))
    text = path.read_text(encoding="utf-8")
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\(.", text)) <= {"url(#"}


def test_report_names_what_was_fitted(model, tmp_path):
    path = tmp_path / "report.html"
    write_report(model, path, title="Orchard")
    text = read(path).text
    for said in ("Orchard", "depth [m]", "age", "slope", "yield", "300", "matern", __version__):
        assert said in text
    assert "n_neighbors=20" in text
    assert "Nothing was tuned" in text


def test_scores_are_those_of_leave_one_out_and_of_the_given_data(model, tmp_path):
    X, y = given()
    write_report(model, tmp_path / "r.html", X, y)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    for found in (model.loo().calibration, model.calibration(X, y)):
        assert f'data-v="{found.rmse!r}"' in text
        assert f'data-v="{found.crps!r}"' in text


def test_every_chart_is_there(model, tmp_path):
    write_report(model, tmp_path / "r.html", *given())
    page = read(tmp_path / "r.html")
    # Four of the leave-one-out predictions, four of the given data, importance, three
    # effects, extrapolation.
    assert len(set(page.charts)) == len(page.charts) == 13
    points = [a for a in page.of("use") if "data-i" in a]
    assert len(points) == 2 * (300 + 80)


def test_pictures_have_ids_of_their_own_and_the_colors_of_the_page(model, tmp_path):
    write_report(model, tmp_path / "r.html", *given())
    page = read(tmp_path / "r.html")
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


def test_the_same_model_has_the_same_pictures(model, tmp_path):
    texts = []
    for name in ("a.html", "b.html"):
        write_report(model, tmp_path / name, title="T")
        text = (tmp_path / name).read_text(encoding="utf-8")
        texts.append(re.sub(r"<header.*?</header>", "", text, flags=re.DOTALL))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("d", [1, 2])
def test_models_of_few_inputs_show_their_predictions(d, tmp_path):
    X, y = make_data(120, d)
    write_report(fit(X, np.column_stack([y, -y])), tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert any(a.get("id") == "predictions" for a in page.of("section"))
    # Two targets, each with a mean and a deviation, and the density; each with its color bar.
    assert len(page.of("image")) == (10 if d == 2 else 0)
    curves = [label for label in page.charts if label.endswith("mean, bands and data")]
    assert len(curves) == (0 if d == 2 else 2)


def test_maps_have_the_shape_of_the_ground_and_units(tmp_path):
    from dataclasses import replace

    from lsgp.ensemble.georeference import Georeference

    X = np.random.default_rng(0).uniform(size=(200, 3)) * [800.0, 400.0, 1.0]
    fitted = fit(X, X[:, 0])
    known = Georeference(0, 1, 'LOCAL_CS["field"]', ("mg/kg",))
    fitted.ensemble_ = replace(fitted.ensemble_, georeference=known)
    write_report(fitted, tmp_path / "r.html")
    maps = sides_of_images((tmp_path / "r.html").read_text(encoding="utf-8"))[::2]
    assert len(maps) == 3
    for width, height in maps:
        assert abs(height / width - np.ptp(X[:, 1]) / np.ptp(X[:, 0])) < 0.01
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "y [mg/kg]</text>" in text
    assert "rows per cell</text>" in text
    assert "Mean of y at x2 = 0." in text


def test_names_from_the_data_are_text_and_nothing_else(tmp_path):
    X, y = make_data(60, 2)
    names = [NASTY, "\"'>&amp; ü 漢字 \u2028 ]]> <!--"]
    frame = pd.DataFrame(X, columns=names)
    model = fit(frame, pd.Series(y, name="</script><img src=x onerror=alert(2)>"))
    write_report(model, tmp_path / "r.html", frame, y, title="<b>bold</b>")
    page = read(tmp_path / "r.html")
    # The data of the tooltips, and the page's own script.
    assert [a.get("type") for a in page.of("script")] == ["application/json", None]
    assert page.of("img") == page.of("b") == []
    assert not any(name.startswith("on") for _, a in page.elements for name in a)
    assert NASTY in page.text
    assert "<b>bold</b>" in page.text
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    content = re.search(r'id="observations">(.*?)</script>', text, re.DOTALL)[1]
    data = json.loads(content)
    assert data["loo-0"]["columns"][1] == "observed </script><img src=x onerror=alert(2)>"
    assert "<" not in content


def test_rows_with_missing_values_are_left_out_and_counted(model, tmp_path):
    X, y = given()
    X.iloc[3, 1] = np.nan
    y[5] = np.nan
    write_report(model, tmp_path / "r.html", X, y)
    assert "2 rows with missing values left out." in read(tmp_path / "r.html").text
    X.iloc[:, 0] = np.nan
    write_report(model, tmp_path / "r.html", X, y)
    assert "There is no row without missing values." in read(tmp_path / "r.html").text


def test_training_rows_that_are_given_again_are_noticed(model, tmp_path):
    X, y = make_data(300, 3)
    write_report(model, tmp_path / "r.html", pd.DataFrame(X, columns=model.feature_names_in_), y)
    assert "300 of these 300 rows are training rows" in read(tmp_path / "r.html").text
    write_report(model, tmp_path / "r.html", *given())
    assert "are training rows" not in read(tmp_path / "r.html").text


def test_large_data_are_sampled_and_the_page_says_so(model, tmp_path):
    write_report(model, tmp_path / "r.html", *given(), n_points=50)
    text = read(tmp_path / "r.html").text
    assert "A random sample of 50 of 300 training rows." in text
    assert "A random sample of 50 of 80 rows." in text


def test_queries_without_targets_show_where_they_extrapolate(model, tmp_path):
    X, _ = given(40)
    X.iloc[:4, 2] = 9.0
    write_report(model, tmp_path / "r.html", X)
    page = read(tmp_path / "r.html")
    flagged = np.sum(model.explain(X).is_extrapolating)
    assert flagged >= 4
    assert f"{100 * flagged / 40:.1f} % of 40 given rows ({flagged}) are flagged" in page.text
    assert "Given data" not in page.text


def test_bars_of_extrapolation_hold_all_rows(model, tmp_path):
    X, _ = given(200)
    X.iloc[0] = 1e3  # beyond the last bar
    write_report(model, tmp_path / "r.html", X)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    chart = text[text.index("Histogram of the scores of extrapolation") :]
    tips = re.findall(r'data-tip="([^"]*) rows"', chart[: chart.index("</svg>")])
    counts = [int(tip.rpartition(": ")[2].replace(",", "")) for tip in tips]
    assert sum(counts) == 200
    assert counts[-1] >= 1


def test_scores_of_extrapolation_are_those_of_the_explanations(model):
    X, _ = given(30)
    explained = model.explain(X)
    np.testing.assert_allclose(
        extrapolation_scores(model, X.to_numpy()), explained.extrapolation, rtol=1e-12
    )


def test_worst_predictions_are_explained_without_their_own_row(model, tmp_path):
    write_report(model, tmp_path / "r.html")
    loo = model.loo()
    worst = int(np.argmax(np.abs(loo.residuals)))
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    table = re.search(r'<table class="cases">.*?</tbody>', text, re.DOTALL)[0]
    assert f'data-v="{worst}"' in table
    assert f"row {worst:,}<" not in table
    X = make_data(300, 3)[0]
    frame = pd.DataFrame(X[[worst]], columns=model.feature_names_in_)
    explained = model.explain(frame, exclude=[worst])
    np.testing.assert_allclose(explained.predicted.mean[0], loo.predicted.mean[worst])
    strongest = np.argmax(np.abs(explained.contributions[0]))
    assert f"row {explained.rows[0, strongest]:,}<" in table


@pytest.mark.parametrize("exclude", [[0], [0.0, 1.0], [0, 300], [-2, 0]])
def test_rows_to_explain_without_must_be_training_rows(model, exclude):
    X, _ = given(2)
    with pytest.raises(ValueError, match="does not name one of the 300 training rows"):
        model.explain(X, exclude=exclude)


@pytest.fixture(scope="module")
def of_any_size(tmp_path_factory):
    """A model of which tuning chose everything, integrated GPs among it, and its report."""
    X, y = make_data(150, 2)
    model = regressor(effort__n_models=3, effort__n_points=100, n_neighbors="auto").fit(X, y)
    path = tmp_path_factory.mktemp("reports") / "r.html"
    write_report(model, path)
    return model, path.read_text(encoding="utf-8")


def test_candidates_of_tuning_are_listed(of_any_size):
    model, text = of_any_size
    table = re.search(r'<table id="candidates".*?</table>', text, re.DOTALL)[0]
    assert table.count("<tr") == 1 + len(model.tuning_.candidates)
    assert table.count('class="chosen"') == len(model.tuning_.chosen)
    chart = text[text.index("Losses of the candidates") :]
    tips = re.findall(r'data-tip="([^"]*)"', chart[: chart.index("</svg>")])
    assert len(tips) == len(model.tuning_.candidates)
    weights = [re.search(r"weight (.*) %", tip)[1] for tip in tips]
    assert sum(weight != "0.0" for weight in weights) == len(model.tuning_.chosen)


@pytest.mark.parametrize(
    "case",
    ["constant target", "constant input", "two rows", "duplicates", "huge", "fixed bandwidth"],
)
def test_odd_models_get_a_report_too(case, tmp_path):
    X, y = make_data(40, 2)
    settings = {}
    if case == "constant target":
        y = np.full(40, 3.0)
    elif case == "constant input":
        X[:, 1] = 7.0
    elif case == "two rows":
        X, y = X[:2], y[:2]
    elif case == "duplicates":
        X, y = np.repeat(X[:1], 40, axis=0), y
    elif case == "huge":
        X, y = 1e150 * X, 1e150 * y
    else:
        settings = {"localizer__bandwidth": 2.0, "input_transform": None}
    model = LSGPRegressor().set_params(objective=None, **settings).fit(X, y)
    write_report(model, tmp_path / "r.html", X, y)
    page = read(tmp_path / "r.html")
    assert "What was fitted" in page.text
    assert not re.search(r' (x|y|d|width)="[^"]*(nan|inf)', (tmp_path / "r.html").read_text())


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


def test_wrong_arguments_are_refused_with_a_remedy(model, tmp_path):
    X, y = given()
    with pytest.raises(ValueError, match="y was given without X"):
        write_report(model, tmp_path / "r.html", y=y)
    with pytest.raises(ValueError, match=r"y has shape \(79,\), but X has 80 rows"):
        write_report(model, tmp_path / "r.html", X, y[1:])
    with pytest.raises(ValueError, match="target_names has 2 names, but the model has 1"):
        write_report(model, tmp_path / "r.html", target_names=["a", "b"])
    with pytest.raises(FileNotFoundError, match="Create the folder first"):
        write_report(model, tmp_path / "none" / "r.html")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_without_its_extra_one_error_names_it(model, tmp_path, monkeypatch, name):
    monkeypatch.setitem(__import__("sys").modules, name, None)
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


def test_header_shows_the_given_data_where_there_are(model, tmp_path):
    X, y = given()
    write_report(model, tmp_path / "with.html", X, y)
    write_report(model, tmp_path / "without.html")
    header = (
        (tmp_path / "with.html").read_text("utf-8").split('class="tiles"')[1].split("<section")[0]
    )
    assert number(model.calibration(X, y).rmse) in header
    assert "RMSE (given data, yield)" in header
    assert ">80<" in header
    alone = (tmp_path / "without.html").read_text("utf-8").split('class="tiles"')[1]
    assert "RMSE (leave-one-out, yield)" in alone.split("<section")[0]


def test_report_shows_importance_and_effects(model, tmp_path):
    write_report(model, tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    found = model.importance()
    for j in found.order:
        assert f"{found.names[j]}: {number(found.values[j], 3)} ±" in (
            tmp_path / "r.html"
        ).read_text(encoding="utf-8")
    assert sum(label.startswith("Effect of ") for label in page.charts) == 3


def test_weights_of_models_add_to_a_hundred(of_any_size):
    fitted, text = of_any_size
    text = text.split('id="models"')[1].split("</table>")[0]
    shares = [float(share) for share in re.findall(r">(\d+\.\d) %<", text)]
    # Those that are integrated over hyperparameters have one row.
    ensemble = fitted.ensemble_
    assert len(shares) == len(ensemble.chosen) + (len(ensemble.integrated) > 0)
    assert sum(shares) == pytest.approx(100.0)
