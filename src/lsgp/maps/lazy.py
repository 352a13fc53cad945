# SPDX-License-Identifier: BSD-3-Clause
"""Maps of chunked templates: each chunk is a task, which opens the model as others do."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from lsgp.compute.blas import one_blas_thread
from lsgp.distributed.transfer import opened, transfer
from lsgp.maps.cells import MapQuestion
from lsgp.maps.inputs import Cells, expand
from lsgp.maps.plan import MapPlan


def lazy_values(plan: MapPlan) -> Any:
    """The variables of the map (v, ...) as a Dask array with the chunks of the template."""
    grid, chunks = plan.grid, plan.grid.chunks
    assert chunks is not None
    n_dims = len(grid.dims)
    inputs: list[Any] = []
    for place, dim in enumerate(grid.dims):
        inputs += [da.from_array(grid.axis(dim), chunks=(chunks[place],)), (place,)]
    for source in plan.sources.others.values():
        places = [grid.dims.index(dim) for dim in source.dims]
        wanted = {dim: chunks[place] for dim, place in zip(source.dims, places, strict=True)}
        # Coordinates are indexes, which are never lazy, unless they are taken as plain values.
        inputs += [source.variable.to_base_variable().chunk(wanted).data, tuple(places)]
    sent = transfer(plan.model)
    own = tokenize(*(part.name for part in inputs[::2]), plan.question, chunks)
    return da.blockwise(
        _answer_chunk,
        (n_dims, *range(n_dims)),
        *inputs,
        question=plan.question,
        dims=grid.dims,
        other_dims=tuple(source.dims for source in plan.sources.others.values()),
        model=sent.model,
        new_axes={n_dims: len(plan.variables)},
        dtype=np.dtype(plan.question.dtype),
        meta=np.empty((0,) * (n_dims + 1), plan.question.dtype),
        name=f"lsgp-map-{tokenize(own, sent.token)}",
    )


def _answer_chunk(
    *parts: NDArray[Any],
    question: MapQuestion,
    dims: tuple[object, ...],
    other_dims: tuple[tuple[object, ...], ...],
    model: object,
) -> NDArray[Any]:
    axes, others = parts[: len(dims)], parts[len(dims) :]
    cells = Cells(
        tuple(axes),
        tuple(expand(np.asarray(o), d, dims) for o, d in zip(others, other_dims, strict=True)),
    )
    with one_blas_thread():
        return question.answer(opened(model), cells)  # type: ignore[arg-type]
