# SPDX-License-Identifier: BSD-3-Clause
"""Effects of a category and of a season, of a table with texts, dates and holes."""

from pathlib import Path

import numpy as np
import polars as pl

from lsgp import LSGPRegressor
from lsgp.plotting import plot_effects

rng = np.random.default_rng(0)
n = 500
day = rng.integers(0, 2200, n)
shop = rng.choice(["harbor", "station", "market", "suburb"], n, p=[0.4, 0.3, 0.2, 0.1])
price = rng.uniform(1.0, 3.0, n)
# Ice cream: much in summer, more at the harbor, less where it is dear.
sold = 60.0 + 40.0 * np.sin(2.0 * np.pi * (day - 110) / 365.25) - 12.0 * price
sold += np.select([shop == "harbor", shop == "suburb"], [25.0, -20.0]) + 4.0 * rng.normal(size=n)
table = pl.DataFrame(
    {
        "day": np.datetime64("2019-01-01") + day,
        "shop": shop,
        "price": [None if k % 20 == 7 else float(value) for k, value in enumerate(price)],
    }
)

settings = {"kernel": "matern32", "input_transform": "standardize", "effort__n_models": 1}
model = (
    LSGPRegressor().set_params(**settings, effort__n_points=300, random_state=0).fit(table, sold)
)
axes = plot_effects(model, ["day: day of year", "shop", "price"])
axes[0].figure.savefig(Path(__file__).with_name("images") / "mixed_table.png", dpi=110)
