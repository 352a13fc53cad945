# SPDX-License-Identifier: BSD-3-Clause
"""The comparison with other methods: runs are isolated and resumable, tables say what they show."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lsgp.method.distribution import PredictiveDistribution

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import comparison_report  # noqa: E402
import comparison_tables as tables  # noqa: E402
import rerun  # noqa: E402
import run  # noqa: E402
import runner  # noqa: E402
from peer_sklearn import fit_knn, fit_random_forest  # noqa: E402
from peers import METHODS, Task, folds  # noqa: E402
from runner import OVER_LIMIT, ResultsFile, run_isolated, run_jobs  # noqa: E402
from scores import LEVELS, scores  # noqa: E402

pytest.importorskip("resource")

#: A program as the runner wants it, with a method that fails, waits, or returns.
PROGRAM = """
import os, sys
sys.path.insert(0, {folder!r})
from runner import answer

def measure(job):
    if job["method"] == "gpboost":
        raise ValueError("no such\\ncovariance")
    while job["method"] == "svgp":
        pass
    threads = os.environ["OMP_NUM_THREADS"]
    return {{"rmse": float(job["split"]), "fit_cpu": 1.0, "threads": threads}}

answer(sys.argv[2], measure)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(folder=str(BENCHMARKS)))
    return str(path)


def make_result(dataset, method, split, value, **entries):
    scored = dict.fromkeys(
        ("rmse", "crps", "nll", "interval_score", "coverage", "fit_cpu", "predict_cpu"), value
    )
    scored |= {"peak_memory": 200, "coverages": {str(level): level for level in LEVELS}}
    identity = {"dataset": dataset, "method": method, "split": split, "version": "1"}
    return identity | scored | entries


@pytest.fixture
def results_file(tmp_path):
    """KNN is worse on split 5, and not run on 6, where lsgp is far worse than on 5."""
    machine = {"cpu": "a CPU", "instruction_set": "none", "versions": {"python": "3"}}
    results = [
        {"machine": machine},
        make_result("yacht", "lsgp", 5, 1.0),
        make_result("yacht", "lsgp", 6, 9.0),
        make_result("yacht", "knn", 5, 2.0),
        make_result("boston", "knn", 5, 2.5),
        {"dataset": "boston", "method": "lsgp", "split": 5, "failure": "too hot", "version": "1"},
        make_result("satellite", "lsgp", 5, 1.5),
    ]
    path = tmp_path / "comparison.jsonl"
    path.write_text("\n".join(map(json.dumps, results)) + "\n")
    return path


def test_a_run_has_one_thread_and_its_peak_memory(program):
    result = run_isolated(program, {"method": "knn", "split": 5}, time_limit=60)
    assert result["threads"] == "1"
    assert result["rmse"] == 5.0
    assert 5 < result["peak_memory"] < 2000


def test_failures_are_one_line(program):
    result = run_isolated(program, {"method": "gpboost"}, time_limit=60)
    assert result == {"failure": "covariance"}


def test_a_run_over_the_limit_is_ended(program, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 100.0)  # where much else runs
    result = run_isolated(program, {"method": "svgp"}, time_limit=1)
    assert result == {"failure": f"{OVER_LIMIT} 1 s of CPU time"}


def test_jobs_that_are_there_are_not_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"method": "knn", "split": 5, "rmse": 0.5}\n{"method": "knn", "sp')
    jobs = [{"method": "knn", "split": split} for split in (5, 6, 7, 8)]
    run_jobs(
        jobs,
        ResultsFile(path),
        lambda job: {"rmse": float(job["split"])},
        why_not=lambda job: "told not to" if job["split"] == 7 else None,
        is_left_out=lambda job: job["split"] == 8,
        quiet=True,
    )
    found = {r["split"]: r for r in ResultsFile(path).results if "split" in r}
    assert found.keys() == {5, 6, 7}
    assert found[5] == {"method": "knn", "split": 5, "rmse": 0.5}
    assert found[6]["rmse"] == 6.0
    assert found[6]["commit"]
    assert found[6]["cpu"]
    assert found[7]["failure"] == "told not to"


def test_a_benchmark_is_what_its_axes_span_until_a_method_fails(tmp_path, monkeypatch):
    measured = []

    def measure(n, d, method, folder):
        measured.append((n, d, method))
        if d == 8:
            raise MemoryError("too many")
        return {"rmse": float(n), "fit_cpu": 1.0}

    monkeypatch.setitem(
        run.BENCHMARKS, "scaling", run.BENCHMARKS["scaling"]._replace(measure=measure)
    )
    monkeypatch.setattr(run, "run_isolated", _run_in_this_process)
    path = tmp_path / "scaling.jsonl"
    for _ in range(2):
        run.run("scaling", path, chosen={"n": [10, 100], "method": ["knn"]}, quiet=True)
    assert measured == [(10, 2, "knn"), (10, 8, "knn"), (100, 2, "knn")]
    file = ResultsFile(path)
    assert [row["rmse"] for row in file.select(d=2)] == [10.0, 100.0]
    assert [row["failure"] for row in file.select(d=8)] == [
        "too many",
        "not tried: failed with n 10",
    ]


def _run_in_this_process(program, order, time_limit):
    try:
        return run.measure_here(order)
    except MemoryError as error:
        return {"failure": str(error)}


def test_scores_of_a_known_distribution():
    y = np.random.default_rng(0).normal(size=20_000)
    found = scores(PredictiveDistribution(np.zeros_like(y), np.ones_like(y)), y)
    assert found["rmse"] == pytest.approx(1.0, abs=0.02)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=0.01)
    assert found["nll"] == pytest.approx(0.5 * np.log(2 * np.pi) + 0.5, abs=0.02)
    for level in LEVELS:
        assert found["coverages"][str(level)] == pytest.approx(level, abs=0.015)
    with pytest.raises(ArithmeticError, match="rmse"):
        scores(PredictiveDistribution(np.full_like(y, np.nan), np.ones_like(y)), y)


@pytest.mark.parametrize("fit", [fit_knn, fit_random_forest], ids=lambda fit: fit.__name__)
def test_peers_of_scikit_learn_are_accurate_and_calibrated(fit):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    y = 50 + 10 * np.sin(3 * X[:, 0]) + rng.normal(size=500)
    predicted = fit(Task(X[:400], y[:400], seed=0))(X[400:])
    found = scores(predicted, y[400:])
    assert found["rmse"] < 2.0
    assert 0.85 < found["coverage"] < 0.99


def test_standardized_methods_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    plain = fit_knn(Task(X, y, 0))(X[:9])
    scaled = fit_knn(Task(1e3 * X + 5, 1e-3 * y - 7, 0))(1e3 * X[:9] + 5)
    np.testing.assert_allclose(scaled.mean, 1e-3 * plain.mean - 7, rtol=1e-9)
    np.testing.assert_allclose(scaled.scale, 1e-3 * plain.scale, rtol=1e-9)


def test_folds_hold_every_row_out_once_unless_there_are_many():
    held = np.concatenate([held for _, held in folds(103, seed=1)])
    assert sorted(held) == list(range(103))
    assert [len(held) for _, held in folds(200_000, seed=1)] == [20_000]


def test_first_is_decided_on_the_splits_that_both_have(results_file):
    comparison = tables.Comparison.read(results_file)
    metric = tables.METRICS["crps"]
    assert comparison.mean("yacht", "lsgp", "crps") == 5.0
    assert comparison.first("yacht", metric) == ["lsgp"]
    assert comparison.common_splits("yacht") == {5}
    table = tables.metric_table(comparison, metric)
    assert "| lsgp | **5.00** (2) | failed |" in table
    assert "| KNN | 2.00 (1; 1.00) | 2.50 (1) |" in table
    assert "| lsgp | 1 of 1 | 1.0 |" in tables.rank_table(comparison)
    assert tables.failure_notes(comparison) == "- lsgp on boston: too hot."
    assert "| SPDE (published) | 1.53 |" in tables.satellite_table(comparison)


def test_texts_of_the_documentation_are_there_without_results(tmp_path, results_file):
    nowhere = tmp_path / "nowhere.jsonl"
    without = comparison_report.substitutions(nowhere, nowhere, nowhere, nowhere)
    assert without.keys() == comparison_report.substitutions(results_file, nowhere).keys()
    assert without["comparison_crps"] == comparison_report.MISSING
    folder = BENCHMARKS.parent / "docs"
    pages = [(folder / f"{name}.md").read_text("utf-8") for name in ("benchmarks", "large_data")]
    for name in without:
        assert f"{{{{ {name} }}}}" in "".join(pages)


def test_pictures_are_drawn(tmp_path, results_file):
    pytest.importorskip("matplotlib")
    scaling = tmp_path / "scaling.jsonl"
    lines = [
        {"d": d, "n": n, "method": m, "fit_cpu": 1e-3 * n, "predict_cpu": 1.0, "rmse": 0.1}
        for d in (2, 8)
        for n in (1000, 10_000)
        for m in ("lsgp", "knn")
    ]
    lines.append(
        {"d": 8, "n": 100_000, "method": "knn", "failure": f"{OVER_LIMIT} 180 s of CPU time"}
    )
    scaling.write_text("\n".join(map(json.dumps, lines)) + "\n")
    for path in comparison_report.draw(results_file, scaling, tmp_path / "pictures"):
        assert path.stat().st_size > 5000
    table = tables.scaling_table(ResultsFile(scaling).results)
    assert "| KNN | 1.0 + 1.0 (0.10) | 10 + 1.0 (0.10) | over 180 s |" in table


def test_every_method_names_a_function_that_says_what_it_does():
    for method in METHODS.values():
        source = (BENCHMARKS / f"{method.module}.py").read_text(encoding="utf-8")
        assert f'def {method.function}(task: Task) -> Predict:\n    """' in source


def test_methods_on_a_gpu_are_named():
    machine = {"cpu": "a processor", "instruction_set": "avx2", "versions": {"python": "3.12"}}
    rows = [make_result("yacht", "lsgp", 5, 1.0), make_result("yacht", "svgp", 5, 2.0)]
    without = tables.describe(tables.Comparison([{"machine": machine}, *rows]))
    rows[1]["device"] = "cuda"
    label = METHODS["svgp"].label
    assert "GPU" not in without
    described = tables.describe(tables.Comparison([{"machine": machine}, *rows]))
    assert f"{label} used a GPU" in described


def test_the_readme_says_what_the_results_show():
    comparison = tables.Comparison.read(comparison_report.COMPARISON)
    readme = comparison_report.README.read_text("utf-8")
    expected = comparison_report.with_readme_text(readme, tables.readme_text(comparison))
    assert readme == expected, "Run benchmarks/comparison_report.py --readme."


def test_a_rerun_replaces_our_rows_and_keeps_those_of_peers(tmp_path):
    path = tmp_path / "noisy.jsonl"
    old = [
        {"machine": {"cpu": "old"}},
        {"task": "noise", "method": "lsgp", "error": 9.0},
        {"task": "noise", "method": "lightgbm", "error": 1.0},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in old))
    seen = []

    def stops(name, fresh, folder):
        ResultsFile(fresh).add({"task": "square", "method": "lsgp", "error": 0.5, "fit_cpu": 60.0})
        raise KeyboardInterrupt

    def goes_on(name, fresh, folder):
        seen.extend(ResultsFile(fresh).select(method="lsgp"))
        ResultsFile(fresh).add({"task": "noise", "method": "lsgp", "error": 2.0, "fit_cpu": 60.0})

    with pytest.raises(KeyboardInterrupt):
        rerun.rerun("noisy", None, tmp_path, stops)
    assert len(ResultsFile(path).results) == 3  # as it was
    assert rerun.rerun("noisy", None, tmp_path, goes_on) == (
        "noisy: 2 rows in 2.0 CPU minutes, 0 failed"
    )
    assert [row["task"] for row in seen] == ["square"]  # what was done before is not done again
    rows = ResultsFile(path).results
    assert [row.get("error") for row in rows] == [None, 1.0, 0.5, 2.0]
    assert not list(tmp_path.glob("*.new"))


def test_noisy_and_beyond_tables_are_of_their_results():
    row = {"split": 0, "coverage": 0.95, "fit_cpu": 1.0, "predict_cpu": 0.5}
    noisy_rows = [
        {"machine": {}},
        {"task": "square", "method": "lsgp", "error": 0.06, "crps": 1.13, **row},
        {"task": "square", "method": "lightgbm", "error": 0.1, "crps": 1.12, **row},
        {"task": "noise", "method": "gp-5000", "failure": "too hot"},
    ]
    text = tables.noisy_table(noisy_rows)
    assert "| lsgp | **0.0600** | 1.13 | 0.950 | 1.00 | 0.500 |" in text
    assert "| LightGBM | 0.100 | **1.12** |" in text
    assert "| exact GP of 5,000 rows | too hot |" in text
    beyond = [
        {"task": "argo without an ocean", "method": method, "crps": crps, "coverage": 0.93}
        for method, crps in (("exact", 0.4), ("plain", 0.3), ("queries", 0.2))
    ]
    text = tables.beyond_table(beyond)
    assert "| argo without an ocean | 0.400 | 0.93 | 0.300 | 0.93 | **0.200** | 0.93 |" in text
    assert "no larger than the exact GP's on 1 of 1, in the mean 0.75 of it." in text
    ours = [{"method": "lsgp", "commit": "abc", "cpu": "fast"}]
    assert tables.provenance(ours).startswith("All rows of lsgp are of commit `abc`")
    assert tables.provenance([*ours, {"method": "lsgp"}]) == ""
