# SPDX-License-Identifier: BSD-3-Clause
"""A search that cannot be wrong, and the rows, queries and exclusions to compare others on."""

import numpy as np

from lsgp.search.contract import NO_EXCLUSIONS, Exclusions, SearchRequest


def naive_search(X, lengthscale, queries, k=None, radius=None, e=NO_EXCLUSIONS, unit=None):
    """Rows and squared distances of each query: sums in the order of the inputs, then a sort."""
    unit = lengthscale if unit is None else unit
    Z, factor, results = X / unit, unit / lengthscale, []
    for i, z in enumerate(queries / unit):
        squared, unscaled = np.zeros(len(X)), np.zeros(len(X))
        for j in range(X.shape[1]):
            squared += ((Z[:, j] - z[j]) * factor[j]) ** 2
            unscaled += (unit[j] * (Z[:, j] - z[j])) ** 2
        admissible = np.ones(len(X), bool)
        if e.rows is not None and e.rows[i] >= 0:
            admissible[e.rows[i]] = False
        if e.radius is not None:
            admissible &= unscaled >= e.radius[i] ** 2
        if e.groups is not None and e.query_groups[i] >= 0:
            admissible &= e.groups != e.query_groups[i]
        if radius is not None:
            admissible &= squared <= radius**2
        rows = np.flatnonzero(admissible)
        rows = rows[np.lexsort((rows, squared[rows]))][:k]
        results.append((rows, squared[rows]))
    return results


def pad(results, width, part=0, fill=-1):
    padded = np.full((len(results), width), fill, np.int32 if part == 0 else np.float64)
    for row, result in zip(padded, results, strict=True):
        row[: len(result[part])] = result[part]
    return padded


def draw(n, d, q=5, seed=0):
    rng = np.random.default_rng([seed, n, d])
    return rng.normal(size=(n, d)), rng.uniform(0.3, 3, d), rng.normal(size=(q, d))


def draw_exclusions(X, queries, seed=0):
    rng = np.random.default_rng(seed)
    n, q = len(X), len(queries)
    return Exclusions(
        rng.integers(-1, n, q).astype(np.int32),
        rng.choice([0, 0.3, 1.0], q),
        rng.integers(0, 4, n).astype(np.int32),
        rng.integers(-1, 4, q).astype(np.int32),
    )


def lattice(d, side):
    axes = np.meshgrid(*[np.arange(side, dtype=float)] * d, indexing="ij")
    return np.stack([a.ravel() for a in axes], 1)


def within(queries, lengthscale, radius, max_neighbors, exclusions=NO_EXCLUSIONS, first_query=0):
    """What an index is asked for all rows within a radius."""
    limits = radius, max_neighbors, first_query
    return SearchRequest(queries, lengthscale, None, exclusions, *limits)
