# SPDX-License-Identifier: BSD-3-Clause
"""Averages over areas: in `joint`, under this name while other rooms still ask for it here."""

from lsgp.ensemble.joint import predict_average

__all__ = ["predict_average"]
