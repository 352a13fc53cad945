# SPDX-License-Identifier: BSD-3-Clause
"""Records as JSON and arrays of a model file, and back, checked: by their types and `schemas`.

A record is a table of its fields, and a tuple a list. Arrays lie beside the JSON, which has their
names; other values are as `values` writes them. What is read is checked, because files may be made
by others: no array may make the native core read outside of its memory, and nothing may fail later
and less clearly. Checksums catch damage before.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from lsgp.storage.model_file import DTYPES
from lsgp.storage.rules import SHARED_SIZES, Rule, Schema, Sizes, require
from lsgp.storage.schemas import PROTOCOLS, SCHEMAS
from lsgp.storage.values import decode, encode

Array = NDArray[Any]
Stored = dict[str, Any]
Kind = TypeVar("Kind")


# -- writing -----------------------------------------------------------------------------------


class ArrayStore:
    """Arrays by name; one that several records share is kept once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._alike: dict[tuple[object, ...], list[str]] = {}

    def add(self, name: str, array: Array) -> str:
        """The name under which the array, or one of the same bits, is kept."""
        in_bytes = np.asarray(array, order="C").reshape(-1).view(np.uint8)
        # The first bytes tell nearly all pairs apart, before whole arrays are compared.
        key = (array.shape, array.dtype.str, in_bytes[:64].tobytes())
        alike = self._alike.setdefault(key, [])
        for other in alike:
            kept = self.arrays[other]
            if kept is array or np.array_equal(
                np.asarray(kept, order="C").reshape(-1).view(np.uint8), in_bytes
            ):
                return other
        if array.size:  # empty arrays have no bytes to share
            alike.append(name)
        self.arrays[name] = array
        return name


def write_record(record: Any, name: str, store: ArrayStore) -> Stored:
    """The record as JSON; its arrays are put in the store, under names that start with its name."""
    stored: Stored = {}
    rules = SCHEMAS.get(type(record), Schema()).rules
    for own, hint in fields_in_files(type(record)).items():
        rule = rules.get(own, Rule())
        path = f"{name}.{own}" if name else own
        stored[own] = _write(getattr(record, own), hint, rule, path, store)
    return stored


def _write(value: Any, hint: Any, rule: Rule, name: str, store: ArrayStore) -> Any:
    kinds = _kinds_of(hint)
    if value is None:
        return None
    if rule.is_long:
        as_text = json.dumps([encode(item, name) for item in value])
        return store.add(name, np.frombuffer(as_text.encode(), np.uint8))
    if is_record(type(value)) and type(value) in kinds:
        stored = write_record(value, name, store)
        return {"type": type(value).__name__, **stored} if len(kinds) > 1 else stored
    (kind, *others) = kinds
    if get_origin(kind) is tuple and not others:
        items = _item_hints(kind, len(value))
        pairs = zip(value, items, strict=True)
        return [_write(v, h, rule, f"{name}.{k}", store) for k, (v, h) in enumerate(pairs)]
    if isinstance(value, np.ndarray) and value.dtype.newbyteorder("<") in DTYPES.values():
        return store.add(name, value)
    return encode(value, name)


# -- reading -----------------------------------------------------------------------------------


class Reader:
    """Makes records of JSON and of the arrays of one file."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.sizes: Sizes = {}  # of axes that are known by now, by the names that rules have

    def read(self, kind: type[Kind], stored: Any, name: str = "", **omitted: object) -> Kind:
        """The record of this kind; ``omitted`` are the fields that files do not have."""
        schema, hints = SCHEMAS.get(kind, Schema()), fields_in_files(kind)
        what = name or kind.__name__
        require(isinstance(stored, dict), f"{what} is no table")
        wrong = sorted(stored.keys() ^ hints.keys())
        require(not wrong, f"the fields {wrong} of {what} are not there, or not known")
        # Within the record, other sizes have names of their own.
        outer, self.sizes = self.sizes, _shared(self.sizes)
        values = {}
        for own, hint in hints.items():
            path = f"{name}.{own}" if name else own
            rule = schema.rules.get(own, Rule())
            values[own] = value = self._read(hint, stored[own], rule, path)
            if value is not None and not isinstance(value, list | dict):
                rule.check(path, value, self.sizes)
        self.sizes = outer | _shared(self.sizes)
        make: Callable[..., Kind] = schema.make or kind
        record = make(**values, **omitted)
        if schema.check is not None:
            schema.check(record)
        return record

    def _read(self, hint: Any, stored: Any, rule: Rule, name: str) -> Any:
        kinds = _kinds_of(hint)
        if stored is None and types.NoneType in get_args(hint):
            return None
        if rule.is_long:
            return self._read_long(kinds[0], stored, name)
        if len(kinds) > 1 and is_record(kinds[0]):
            by_name = {kind.__name__: kind for kind in kinds}
            require(stored["type"] in by_name, f"{name} is of unknown type {stored['type']!r}")
            rest = {key: value for key, value in stored.items() if key != "type"}
            return self.read(by_name[stored["type"]], rest, name)
        if len(kinds) > 1:  # values of several types, of which schemas say more
            return decode(stored)
        (kind,) = kinds
        if is_record(kind):
            return self.read(kind, stored, name)
        origin = get_origin(kind) or kind
        if origin is np.ndarray:
            dtype = get_args(get_args(kind)[1])[0]  # of NDArray[dtype]
            array = self.arrays[stored] if isinstance(stored, str) else decode(stored)
            require(isinstance(array, np.ndarray), f"{name} is no array")
            is_right = dtype is Any or np.issubdtype(array.dtype, dtype)
            require(is_right, f"{name} is of {array.dtype}")
            return array
        if origin is tuple:
            require(isinstance(stored, list), f"{name} is no list")
            pairs = zip(stored, _item_hints(kind, len(stored)), strict=True)
            return tuple(self._read(h, s, rule, f"{name}.{k}") for k, (s, h) in enumerate(pairs))
        value = decode(stored)
        allowed = (int, float) if origin is float else (origin,)
        is_right = origin is object or type(value) in allowed
        require(is_right, f"{name} is {value!r}")
        for item in value if origin is list else ():
            require(type(item) in get_args(kind), f"{name} has the item {item!r}")
        return value

    def _read_long(self, hint: Any, stored: str, name: str) -> tuple[Any, ...]:
        in_bytes = self.arrays[stored]
        require(in_bytes.dtype == np.uint8, f"{name} is of {in_bytes.dtype}")
        items = decode(json.loads(in_bytes.tobytes()))
        require(isinstance(items, list), f"{name} is no list")
        kind = get_args(hint)[0]
        require(kind is object or {*map(type, items)} <= {kind}, f"{name} is not all {kind}")
        require(len(set(items)) == len(items), f"{name} has an item twice")
        return tuple(items)


def _shared(sizes: Sizes) -> Sizes:
    return {key: size for key, size in sizes.items() if key in SHARED_SIZES}


# -- types -------------------------------------------------------------------------------------


def is_record(kind: Any) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


_hints_of: Callable[[type], dict[str, Any]] = cache(get_type_hints)


def fields_in_files(kind: Any) -> dict[str, Any]:
    """Type hints of the fields of a record that files have, by name, in order."""
    hints = _hints_of(kind)
    names = kind._fields if hasattr(kind, "_fields") else [own.name for own in fields(kind)]
    omitted = SCHEMAS.get(kind, Schema()).omitted
    return {name: hints[name] for name in names if name not in omitted}


def _kinds_of(hint: Any) -> tuple[Any, ...]:
    """The types that a value of this hint may have, without None."""
    is_union = get_origin(hint) in (Union, types.UnionType)
    kinds = get_args(hint) if is_union else (hint,)
    found: list[Any] = []
    for kind in kinds:
        alias = get_origin(kind)
        if hasattr(alias, "__value__"):  # as NDArray is with NumPy 2.5 on Python 3.12
            kind = alias.__value__[get_args(kind)]
        if kind is not types.NoneType:
            found += PROTOCOLS.get(kind, (kind,))
    return tuple(found)


def _item_hints(hint: Any, n: int) -> tuple[Any, ...]:
    """Type hints of the n items of a tuple."""
    items = get_args(hint)
    return (items[0],) * n if items[-1] is ... else items
