# SPDX-License-Identifier: BSD-3-Clause
"""Maps: values over two inputs, with the data.

All images go from the first row in the south to the last in the north.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lsgp.ensemble import view
from lsgp.estimators.estimator import LSGPEstimator
from lsgp.estimators.regressor import LSGPRegressor
from lsgp.inputs.setting_objects import sphere_of
from lsgp.plotting import style
from lsgp.plotting.style import Axes

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

Array = NDArray[np.float64]
#: From west to east, and from south to north.
Sides: TypeAlias = tuple[tuple[float, float], tuple[float, float]]

#: Share of the range of the data that a map shows beyond it.
MARGIN = 0.03
#: Sides that differ by more than this factor are no map, unless a reference system says so.
LONGEST = 3.0


class MapFrame(NamedTuple):
    """The rectangle that a map shows, and the inputs along its sides."""

    columns: tuple[int, int]  # inputs to the east and to the north
    sides: Sides
    aspect: float | None = None  # height by width on the ground; None: as the page likes it

    def shape(self, n: int) -> tuple[int, int]:
        """Rows and columns of about square cells, ``n`` along the longer side."""
        if self.aspect is None:
            return n, n
        if self.aspect > 1:
            return n, max(4, round(n / self.aspect))
        return max(4, round(n * self.aspect)), n

    def centers(self, n: int) -> Array:
        """Centers of the cells, (rows * columns, 2), row by row from the south."""
        x, y = (
            low + (high - low) * (np.arange(k) + 0.5) / k
            for (low, high), k in zip(self.sides, self.shape(n)[::-1], strict=True)
        )
        return np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)


def plot_map(
    model: LSGPRegressor,
    bounds: Sequence[float] | None = None,
    resolution: int = 200,
    *,
    target: int | str = 0,
    kind: str = "observation",
    n_points: int = 1000,
    ax: style.SeveralAxes | None = None,
) -> style.AxesArray:
    """Maps of the mean and of the standard deviation of a model of two inputs.

    Parameters
    ----------
    model : fitted LSGPRegressor
        Of two inputs.
    bounds : (low_0, high_0, low_1, high_1) or array-like of shape (n, 2), default=None
        The rectangle to show, or points that it has to hold. None: the training data.
    resolution : int
        Pixels along each input: the model predicts ``resolution`` ** 2 of them.
    target : int or str
        Which target to show, if there are several.
    kind : {"observation", "latent"}
        Whose standard deviation is shown.
    n_points : int
        Training points shown at most, drawn at random; the legend says so. 0 for none.
    ax : two matplotlib Axes, default=None

    Returns
    -------
    array of two matplotlib Axes
        Of the mean and of the standard deviation.

    Examples
    --------
    >>> from lsgp import LSGPRegressor
    >>> from lsgp.plotting import plot_map
    >>> model = LSGPRegressor(objective=None).fit([[0, 0], [0, 1], [1, 0]], [0, 1, 2])
    >>> mean, std = plot_map(model, resolution=20)
    >>> mean.get_title(loc="left"), std.get_title(loc="left")
    ('mean of y', 'standard deviation of y (observation)')
    """
    style.require_kind(model, False, "plot_map", "plot_decision")
    k = view.target_number(model.ensemble_, target)
    style.require_inputs(model, 2, "plot_map", "Use plot_fit for one input, plot_residuals else.")
    if resolution < 2:
        raise ValueError(f"resolution={resolution} is too coarse for a map. Use at least 2.")
    data = view.training_rows(model.ensemble_, max(n_points, 1))
    frame = MapFrame((0, 1), _sides(model, data.X if bounds is None else bounds))
    axes = style.several_axes(ax, 2, (10.0, 4.2), "plot_map")
    queries = view.EncodedRows(frame.centers(resolution))
    mean, std = model.predict(queries, return_std=True, kind=kind)
    name = view.target_names(model.ensemble_)[k]
    points = view.in_one_piece(model.ensemble_, data.X, frame.sides) if n_points > 0 else None
    shown = style.count_label("training points", len(data.X), data.n_total)
    titles = (f"mean of {name}", f"standard deviation of {name} ({kind})")
    labels, colors = (name, f"std of {name}"), (style.VALUE_MAP, style.UNCERTAINTY_MAP)
    for j, values in enumerate((mean, std)):
        image = view.columns_of(values)[:, k].reshape(frame.shape(resolution))
        draw_map(axes[j], model, frame, image, colors[j], labels[j], points, shown)
        style.title(axes[j], titles[j])
    if n_points > 0:
        handles = axes[0].get_legend_handles_labels()
        look: dict[str, Any] = {"frameon": False, "fontsize": 9, "markerscale": 2}
        axes[0].figure.legend(*handles, loc="outside lower center", **look)
    return axes


def draw_map(
    ax: Axes,
    model: LSGPEstimator,
    frame: MapFrame,
    image: Array,
    colors: str | Colormap,
    label: str,
    points: Array | None = None,
    points_label: str = "data",
) -> None:
    """Draw an image (rows, columns) with its bar of colors, and points (k, 2) over it.

    Colors are of all values, less the outermost ones if they are far off: a few pixels beyond the
    data would otherwise take all of the colors.
    """
    values = image[np.isfinite(image)]
    low, high = 0.0, 1.0
    if len(values):
        inner_low, inner_high = np.quantile(values, [0.005, 0.995])
        beyond = 0.25 * float(inner_high - inner_low)
        low = max(float(values.min()), float(inner_low) - beyond)
        high = min(float(values.max()), float(inner_high) + beyond)
    drawn = show_image(ax, model, frame, image, cmap=colors, vmin=low, vmax=high)
    is_below, is_above = bool(np.any(image < low)), bool(np.any(image > high))
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    style.color_bar(ax, drawn, label=label, extend=ends.get((is_below, is_above), "both"))
    if points is not None:
        # White in a dark ring shows on all colors of both maps.
        look: dict[str, Any] = {"color": "white", "markeredgecolor": style.INK}
        look["markeredgewidth"] = 0.5 if len(points) <= 300 else 0.25
        look["markersize"] = max(0.75 * style.marker_size(len(points)), 1.9)
        ax.plot(points[:, 0], points[:, 1], "o", label=points_label, **look)


def show_image(
    ax: Axes, model: LSGPEstimator, frame: MapFrame, image: NDArray, **options: Any
) -> AxesImage:
    """Show an image in the proportions of the ground, its sides with their names."""
    if frame.aspect is not None:
        ax.set_box_aspect(frame.aspect)
    extent = (*frame.sides[0], *frame.sides[1])
    # Pixels as they are: an SVG then holds the cells themselves.
    options |= {"origin": "lower", "aspect": "auto", "interpolation": "none"}
    drawn = ax.imshow(image, extent=extent, **options)
    names = view.input_names(model.ensemble_)
    ax.set(xlabel=names[frame.columns[0]], ylabel=names[frame.columns[1]])
    ax.set(xlim=frame.sides[0], ylim=frame.sides[1])
    return drawn


def coordinates(model: LSGPEstimator) -> tuple[int, int] | None:
    """Columns that are x and y: as known with the model, or its only two; None: there are none."""
    ensemble = model.ensemble_
    if ensemble.encoder is not None:
        return None
    if ensemble.georeference is not None:
        return ensemble.georeference.x, ensemble.georeference.y
    sphere = sphere_of(model.coordinates)
    if sphere is not None:
        lon, lat = (view.input_number(ensemble, given) for given in sphere)
        return lon, lat
    return (0, 1) if ensemble.n_columns == 2 else None


def frame_on_the_ground(model: LSGPEstimator, columns: tuple[int, int], X: Array) -> MapFrame:
    """The rectangle of the rows X (in one piece), in the proportions that it has on the ground."""
    sides = sides_of(model, X, columns)
    width, height = (high - low for low, high in sides)
    is_degrees = sphere_of(model.coordinates) is not None
    if is_degrees:
        # A degree of longitude is shorter away from the equator.
        width *= max(float(np.cos(np.radians(np.mean(sides[1])))), 0.2)
    known = model.ensemble_.georeference
    is_map = is_degrees or (known is not None and known.crs is not None)
    aspect = height / width
    is_even = is_map or 1.0 / LONGEST <= aspect <= LONGEST
    return MapFrame(columns, sides, float(aspect) if is_even else None)


def sides_of(model: LSGPEstimator, X: Array, columns: tuple[int, int] = (0, 1)) -> Sides:
    """Ends of the two axes that show rows X, no farther than the poles."""
    east, north = (
        view.possible(model.ensemble_, j, *style.limits(X[:, j], MARGIN)) for j in columns
    )
    return east, north


def density(model: LSGPEstimator, frame: MapFrame, n: int) -> Array:
    """Training rows in each cell, (rows, columns), the first row in the south; NaN for none."""
    ensemble = model.ensemble_
    everything = view.in_one_piece(
        ensemble, view.inputs_of_rows(ensemble, np.arange(ensemble.n_rows))
    )
    x, y = (everything[:, j] for j in frame.columns)
    counts = np.histogram2d(y, x, bins=frame.shape(n), range=frame.sides[::-1])[0]
    return np.where(counts > 0, counts, np.nan)


def _sides(model: LSGPRegressor, bounds: ArrayLike) -> Sides:
    """Of a rectangle, given by its ends or by points that it holds."""
    given = np.asarray(bounds, dtype=np.float64)
    if given.shape != (4,):
        return sides_of(model, view.in_one_piece(model.ensemble_, style.inputs_of(model, bounds)))
    west, east, south, north = map(float, given)
    if not (np.all(np.isfinite(given)) and west < east and south < north):
        raise ValueError(
            f"bounds={tuple(given.tolist())} is not a rectangle. "
            "Give (low, high) of the first input, then (low, high) of the second."
        )
    return (west, east), (south, north)
