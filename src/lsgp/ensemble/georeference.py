# SPDX-License-Identifier: BSD-3-Clause
"""Where coordinates lie: in `ensemble`, under this name while other rooms still ask for it here."""

from lsgp.ensemble.ensemble import Georeference

__all__ = ["Georeference"]
