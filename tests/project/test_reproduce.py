# SPDX-License-Identifier: BSD-3-Clause
"""The paper is made again: figures, tables, tests, and a run that can be stopped."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from data_folder import data_folder

from lsgp import Effort, LSGPRegressor
from reproduction import DATASET_LABELS, FULL, Protocol, published, reproduce
from reproduction import run as run_module
from reproduction.__main__ import main
from reproduction.contents import write_contents
from reproduction.datasets import DATASETS, load_dataset
from reproduction.document import (
    Document,
    Folded,
    Grid,
    Items,
    Section,
    Text,
    Verdict,
    to_html,
    to_markdown,
)
from reproduction.figures import sample_prior
from reproduction.methods import METHODS, Task, make_task
from reproduction.results import Results

TINY = Protocol(
    "tiny",
    datasets=("yacht",),
    n_splits=1,
    noise_variances=(1e-5, 1e-3),
    lengthscales=(0.4,),
    n_neighbors=(32,),
    knn_neighbors=(1, 3),
    n_validation=30,
    n_gp_tuning=(100,),
    gp_restarts=0,
    sizes=(60,),
    expected_neighbors=(8,),
    n_draws=1,
)


@pytest.fixture(scope="module", autouse=True)
def _quick_tuning():
    """Tuning tries less: these tests are about what is made of results."""
    with pytest.MonkeyPatch.context() as patch:
        quick = partial(LSGPRegressor, effort="fast")
        patch.setattr("reproduction.methods.LSGPRegressor", quick)
        patch.setattr("reproduction.doppler.Effort", partial(Effort, n_points=20))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("reproduction") / "new"
    return reproduce(folder, protocol=TINY, data_folder=data_folder())


def test_a_run_leaves_figures_results_and_reports(made):
    folder = made.report.parent
    names = {path.name for path in folder.iterdir()}
    pictures = {f"figure{k}.{suffix}" for k in (1, 2, 3) for suffix in ("png", "svg")}
    pictures |= {"table2.png", "table2.svg"}
    assert names == pictures | {"results.jsonl", "report.md", "report.html"}
    lines = [json.loads(line) for line in made.results.read_text().splitlines()]
    assert made.n_new == len(lines) == 6
    assert [line["method"] for line in lines if line["kind"] == "mse"] == list(METHODS)
    assert all(line["lsgp"] and line["time"] and line["machine"] for line in lines)


def test_errors_of_local_models_are_far_below_nearest_neighbors(made):
    mse = {r["method"]: r["mse"] for r in Results(made.results).select(kind="mse")}
    assert max(mse["lsgpr-hilbert"], mse["lsgpr-epanechnikov"], mse["default"]) < 2.0
    assert mse["knn"] > 10.0


def test_report_says_what_is_not_there_and_holds_its_pictures(made):
    text = (made.report.parent / "report.md").read_text(encoding="utf-8")
    for said in ("DeepGP: not run", "does not state its test fraction", "too few for any test"):
        assert said in text
    assert "0.63 ± 0.12" in text
    html = made.report.read_text(encoding="utf-8")
    assert html.count("data:image/svg+xml;base64,") == 4
    assert not re.search(r'(src|href)="(?!data:|#)', html)


def test_a_second_run_does_nothing_new(made, monkeypatch):
    def refuse(*_):
        raise AssertionError("this was done already")

    for name in ("load_dataset", "measure", "draw_doppler"):
        monkeypatch.setattr(run_module, name, refuse)
    before = made.results.read_bytes()
    again = reproduce(made.report.parent, protocol=TINY)
    assert again.n_new == 0
    assert made.results.read_bytes() == before


def test_an_interrupted_run_keeps_what_it_has_and_goes_on(tmp_path, monkeypatch):
    folder = data_folder()
    measured = []

    def measure(task, y_test, predict, protocol):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(predict)
        return {"mse": 1.0}

    monkeypatch.setattr(run_module, "measure", measure)
    settings = {"protocol": TINY, "data_folder": folder, "with_figures": False}
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path, **settings)
    assert "The run was interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")
    # As if the process had died in the middle of a line.
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"protocol": "tiny", "kind": "mse", "data')
    measured.clear()
    monkeypatch.setattr(run_module, "measure", lambda *_: measured.append(0) or {"mse": 2.0})
    assert reproduce(tmp_path, **settings).n_new == 3
    assert len(measured) == 3
    found = Results(tmp_path / "results.jsonl").select(kind="mse")
    assert [r["mse"] for r in found] == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert "interrupted" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_tuning_that_was_interrupted_is_no_result(monkeypatch):
    class Interrupted:
        is_complete, chosen = False, ()

    def fit(model, X, y):
        monkeypatch.setattr("lsgp.LSGPRegressor.tuning_", Interrupted())
        return model

    monkeypatch.setattr("lsgp.LSGPRegressor.fit", fit)
    X = np.linspace(0, 1, 20)[:, None]
    with pytest.raises(KeyboardInterrupt):
        METHODS["default"](Task(X, X[:, 0], X, X, X, seed=0, n_jobs=None), TINY)


def test_one_failure_is_noted_and_the_rest_is_run(tmp_path, monkeypatch):
    def measure(task, y_test, predict, protocol):
        if predict is METHODS["gp"]:
            raise MemoryError("no room for <this>")
        return {"mse": 1.0}

    monkeypatch.setattr(run_module, "measure", measure)
    made = reproduce(tmp_path, protocol=TINY, data_folder=data_folder(), with_figures=False)
    assert made.n_new == 4
    assert any("Yacht, split 0, GP: failed. no room for <this>" in s for s in made.not_run)
    assert "no room for &lt;this&gt;" in made.report.read_text(encoding="utf-8")


def test_results_of_another_protocol_do_not_count(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    entry = {"kind": "mse", "dataset": "yacht", "split": 0, "method": "gp"}
    results.add({"protocol": "quick", **entry, "mse": 123.0})
    assert {"protocol": "full", **entry} not in results
    document = write_contents(results, TINY, tmp_path, [])
    assert "123" not in to_markdown(document)


def test_a_full_run_names_its_winners_and_shows_all_tests(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    noise = np.random.default_rng(0).uniform(size=(10, 3))
    for split in range(10):
        for method, mean, u in zip(
            ("gp", "knn", "default"), (3, 9, 0.1), noise[split], strict=True
        ):
            key = {"protocol": "full", "kind": "mse", "dataset": "yacht", "split": split}
            results.add({**key, "method": method, "mse": mean * (1 + 0.1 * u)})
    protocol = dataclasses.replace(FULL, datasets=("yacht",))
    document = write_contents(results, protocol, tmp_path, [])
    text = to_markdown(document)
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| Yacht | ")]
    (row,) = [row for row in rows if "±" in row[1]]
    assert [cell.startswith("**") for cell in row[1:]] == [False, False, True]
    assert ["†" in cell for cell in row[1:]] == [True, False, False]
    assert "on 1 of 1 data sets (Yacht)" in text
    assert "**better** −9" in text
    assert "DeepGP: no results." in text
    assert "(splits 5 to 9), its mean error is the lowest of all columns on 1 of 1" in text
    assert "0.001" in text
    assert ("1 of 1", "data sets: our default beats every column of Table 2") in document.tiles


def test_without_matplotlib_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module.figures, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'lsgp\[plot\]'.*--no-figures"):
        reproduce(tmp_path, protocol=TINY)


def test_inputs_are_scaled_by_the_training_rows_alone():
    data = load_dataset("yacht", data_folder())
    task, y_test = make_task("yacht", data, seed=0, n_jobs=None)
    np.testing.assert_allclose([task.X.min(axis=0), task.X.max(axis=0)], [[0] * 6, [1] * 6])
    assert len(task.y) + len(y_test) == 308
    standardized, _ = make_task("protein", data, seed=0, n_jobs=None)
    np.testing.assert_allclose(standardized.X.std(axis=0), 1.0)
    np.testing.assert_allclose(standardized.X.mean(axis=0), 0.0, atol=1e-12)


def test_published_table_is_that_of_the_paper():
    assert len(published.TABLE_2) == 30
    assert str(published.TABLE_2["yacht", "knn"]) == "57.80 ± 16.65"
    for dataset in DATASET_LABELS:
        assert published.SIZES[dataset] == (DATASETS[dataset].rows, DATASETS[dataset].inputs)
    bold = {key for key, printed in published.TABLE_2.items() if printed.is_bold}
    assert len(bold) == 5
    for dataset, method in bold:
        rivals = [p.mean for (name, _), p in published.TABLE_2.items() if name == dataset]
        assert published.TABLE_2[dataset, method].mean == min(rivals)


def test_remark_on_protein_is_true():
    assert np.var(load_dataset("protein", data_folder()).y) == pytest.approx(37.4, abs=0.05)


def test_localized_priors_are_the_same_draws_times_the_root_of_the_weight():
    x = np.linspace(-3, 3, 61)
    everywhere = sample_prior("rectangular", x, 10.0, 0.0)
    local = sample_prior("epanechnikov", x, 1.0, 0.0)
    weight = np.maximum(1 - x**2, 0)
    np.testing.assert_allclose(local, everywhere * np.sqrt(weight), atol=1e-12)


def test_both_forms_of_a_document_hold_all_its_parts(tmp_path):
    parts = [Text("a **b**"), Verdict("v & w"), Items(["i"]), Grid(["x", "y"], [["<1>", "2"]])]
    section = Section("s", "S", "Title", [*parts, Folded("more", [Text("hidden")])])
    document = Document("T", "sub", [("3", "tiles")], [section], "foot")
    markdown, html = to_markdown(document), to_html(document, tmp_path)
    for text in ("a **b**", "> v & w", "- i", "| <1> | 2 |", "### more", "hidden", "foot"):
        assert text in markdown
    for text in ("<strong>b</strong>", "v &amp; w", "<li>i</li>", "&lt;1&gt;", 'href="#s"'):
        assert text in html


DEEP_GP = """
import numpy as np

class DeepGPRegressor:
    def __init__(self, n_steps, random_state): pass
    def fit(self, X, y):
        self.mean = y.mean()
        return self
    def predict(self, X):
        return np.full(len(X), self.mean)
"""


def test_deep_gp_comes_from_a_file_that_has_its_class(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "find_spec", lambda name: object())
    settings = {"protocol": TINY, "methods": ["deep-gp"], "with_figures": False}
    path = tmp_path / "deep_gp.py"
    path.write_text(DEEP_GP)
    made = reproduce(tmp_path, deep_gp=path, data_folder=data_folder(), **settings)
    assert made.not_run == ()
    assert Results(made.results).select(method="deep-gp")[0]["mse"] > 50.0
    path.write_text("")
    with pytest.raises(ValueError, match=r"deep_gp\.py has no class DeepGPRegressor"):
        reproduce(tmp_path, deep_gp=path, **settings)
    monkeypatch.setattr(run_module, "find_spec", lambda name: None)
    tmp_path = tmp_path / "without torch"
    (sentence,) = reproduce(tmp_path, deep_gp="benchmarks/deep_gp.py", **settings).not_run
    assert "PyTorch is not installed" in sentence


def test_deep_gp_of_the_benchmarks_learns_a_sine():
    pytest.importorskip("torch")
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "deep_gp.py"
    predict = run_module.load_deep_gp(path)
    X = np.linspace(-3, 3, 200)[:, None]
    y = np.sin(2 * X[:, 0])
    protocol = dataclasses.replace(TINY, deep_gp_steps=500)
    task = Task(X, y, X, X, X, seed=0, n_jobs=None)
    assert np.mean((predict(task, protocol).mean - y) ** 2) < 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "yaht"], "There is no data set 'yaht'. Did you mean 'yacht'?"),
        (["--methods", "svm"], "There is no method 'svm'. Choose among lsgpr-hilbert"),
        (["--data-folder", "nowhere"], "there is no folder nowhere"),
        (["--splits", "0"], "not a whole number of at least 1"),
        (["--deep-gp", "nowhere.py"], "nowhere.py is not a Python file"),
        (["-o", __file__], "test_reproduce.py is a file."),
    ],
)
def test_bad_options_are_refused_in_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run_module, "find_spec", lambda name: object())
    assert main(["-o", str(tmp_path / "new"), "--no-figures", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_data_sets_that_cannot_be_had_end_in_one_error(tmp_path, capsys, monkeypatch):
    def refuse(name, folder):
        raise FileNotFoundError(f"Data set {name!r} was not found.")

    monkeypatch.setattr(run_module, "load_dataset", refuse)
    folder = str(tmp_path / "new")
    arguments = ["--datasets", "yacht,boston", "--methods", "knn", "--no-figures", "-o", folder]
    assert main(arguments) == 2
    assert capsys.readouterr().err == (
        "reproduction: 2 of 2 data sets could not be read (Yacht: failed. Data set 'yacht' was "
        f"not found.). What could be made is in {tmp_path / 'new' / 'report.html'}.\n"
    )


def test_command_writes_the_report_and_says_where(tmp_path, capsys):
    folder = str(tmp_path / "new")
    code = main(
        ["--quick", "-o", folder, "--no-figures", "--datasets", "yacht", "--json",
         "--splits", "1", "--methods", "knn,gp", "--data-folder", str(data_folder())]
    )  # fmt: skip
    assert code == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["n_new"] == 2
    assert summary["report"].endswith("report.html")
    assert (tmp_path / "new" / "report.html").exists()
