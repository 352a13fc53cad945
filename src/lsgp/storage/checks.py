# SPDX-License-Identifier: BSD-3-Clause
"""How a record of a model file is refused."""

from __future__ import annotations


class InvalidRecord(ValueError):
    """A record contradicts itself or the arrays."""


def require(condition: object, fact: str) -> None:
    if not condition:
        raise InvalidRecord(fact)
