# SPDX-License-Identifier: BSD-3-Clause
"""The demo shows what the paper shows, in a table and in a picture."""

from __future__ import annotations

import numpy as np
import pytest

from lsgp.cli import demo, main


def test_doppler_is_the_function_plus_noise_of_the_given_deviation():
    X, clean = demo.make_doppler(20_000, 0.0, np.random.default_rng(1))
    x = X[:, 0]
    assert X.shape == (20_000, 1)
    assert np.all(np.diff(x) >= 0)
    assert x.min() >= 0
    assert x.max() <= 1
    np.testing.assert_allclose(
        clean, np.sqrt(x * (1 - x)) * np.sin(2.1 * np.pi / (x + 0.05)), rtol=1e-12
    )
    same, noisy = demo.make_doppler(20_000, 0.1, np.random.default_rng(1))
    np.testing.assert_array_equal(same, X)
    assert np.std(noisy - clean) == pytest.approx(0.1, rel=0.03)
    assert np.std(clean) == pytest.approx(0.29, abs=0.01)


def test_lsgp_follows_the_fast_part_better_than_a_gp():
    draws = demo.compare([200], n_draws=4, seed=0, progress=lambda n: None)[200]
    gp, lsgp = np.mean([draw.errors(demo.FAST_PART) for draw in draws], axis=0)
    assert lsgp < 0.9 * gp
    assert all(draw.lsgp.n_neighbors < 40 for draw in draws)


def test_bands_hold_about_the_observations_they_should():
    draw = demo.compare([200], n_draws=1, seed=0, progress=lambda n: None)[200][0]
    noisy = draw.data.y_test + 0.1 * np.random.default_rng(0).standard_normal(demo.N_TEST)
    for fit in (draw.gp, draw.lsgp):
        assert 0.88 < np.mean((fit.low < noisy) & (noisy < fit.high)) < 0.995


def printed_by(capsys, *arguments):
    assert main(["demo", "--draws", "1", *arguments]) == 0
    return capsys.readouterr().out


def test_demo_prints_a_row_per_size_and_draws_a_picture(tmp_path, capsys):
    image = pytest.importorskip("matplotlib.image")
    output = tmp_path / "picture.png"
    printed = printed_by(capsys, "--sizes", "80", "60", "--output", str(output))
    rows = [line.split() for line in printed.splitlines() if "of 1" in line]
    assert [row[0] for row in rows] == ["80", "60"]
    for row in rows:
        assert all(0 < float(error) < 0.1 for error in row[1:5])
    assert f"Picture: {output}" in printed
    pixels = image.imread(output)[..., :3]
    assert pixels.shape[0] > 400
    assert 0.02 < np.mean(pixels.min(axis=2) < 0.95) < 0.9


def test_demo_without_a_picture_still_prints_the_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "of 1" in printed_by(capsys, "--sizes", "60", "--no-plot")
    monkeypatch.setattr(demo, "find_spec", lambda name: None)  # matplotlib is not there
    printed = printed_by(capsys, "--sizes", "60")
    assert "of 1" in printed
    assert "pip install 'lsgp[plot]'" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "nowhere/x.png"], "there is no folder"),
        (["--draws", "0"], "not a whole number of at least 1"),
        (["--sizes", "5"], "20 training points"),
        (["--seed", "-1"], "must not be negative"),
    ],
)
def test_bad_options_are_refused_in_one_line(arguments, message, capsys):
    assert main(["demo", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
