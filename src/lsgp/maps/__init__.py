# SPDX-License-Identifier: BSD-3-Clause
"""Maps with their reference systems: points and grids in, calibrated grids out.

Imports every room and the estimators; needs the extra ``maps`` (xarray, rioxarray, rasterio,
pyproj, geopandas, h5netcdf, zarr). Chunked grids are predicted lazily, which needs
``distributed`` too.
"""

try:
    import rioxarray as _rioxarray  # noqa: F401  (xarray objects get their .rio from it)
except ImportError as error:  # pragma: no cover - the tests have it
    raise ImportError(
        "lsgp.maps reads and writes grids with rioxarray, which is not installed. Install it "
        "with: pip install 'lsgp[maps]'"
    ) from error

from lsgp.maps.areas import predict_mean
from lsgp.maps.files import write_grid
from lsgp.maps.fitting import fit, set_crs
from lsgp.maps.gaps import fill
from lsgp.maps.plan import predict_grid

__all__ = ["fill", "fit", "predict_grid", "predict_mean", "set_crs", "write_grid"]
