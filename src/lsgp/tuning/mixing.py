# SPDX-License-Identifier: BSD-3-Clause
"""Other transforms for single inputs, where that alone makes leave-one-out predictions better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lsgp.method.contract import LocalModel
from lsgp.tuning.leave_one_out import LeaveOneOut, Sample

#: Fraction by which another transform of an input must lower the loss.
WORTHWHILE = 0.002
#: The lengthscale that suits another transform may be a little shorter or longer.
LENGTHSCALE_FACTORS = (1.0, 0.7, 1.4)


def mix_transforms(
    data: Mapping[str, LeaveOneOut], kind: str, model: LocalModel, sample: Sample, objective: str
) -> tuple[tuple[str, ...], LocalModel]:
    """The transform of each input that has the lowest loss, and the model for them.

    ``data`` holds the training rows in each transform; ``model`` and ``sample`` are of the one
    named ``kind``. Neighborhoods stay as they are, so no index is built: this finds what is worth
    optimizing.
    """
    mixed = replace(data[kind], X=data[kind].X.copy())
    lowest = mixed.evaluate(model, sample, objective).loss
    kinds = [kind] * mixed.X.shape[1]
    for j in range(len(kinds)):
        own, start = mixed.X[:, j].copy(), model
        for other in data:
            if other == kind:
                continue
            mixed.X[:, j] = data[other].X[:, j]
            for factor in LENGTHSCALE_FACTORS:
                trial = _stretch(start, j, factor)
                loss = mixed.evaluate(trial, sample, objective).loss
                if loss < lowest - WORTHWHILE * abs(lowest):
                    lowest, model, kinds[j] = loss, trial, other
        mixed.X[:, j] = own if kinds[j] == kind else data[kinds[j]].X[:, j]
    return tuple(kinds), model


def _stretch(model: LocalModel, j: int, factor: float) -> LocalModel:
    lengthscale = model.lengthscale.copy()
    lengthscale[j] *= factor
    return model.replace(lengthscale=lengthscale)
