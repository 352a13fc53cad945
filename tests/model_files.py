# SPDX-License-Identifier: BSD-3-Clause
"""Files of models whose contents are changed, with the checksums of valid ones."""

import json

import numpy as np

from lsgp.storage.model_file import Contents, read_model_file, write_model_file


def own_contents(path):
    texts, arrays = read_model_file(path)
    texts = {name: texts[name] for name in ("library_version", "estimator")}
    return Contents(texts, {name: array.copy() for name, array in arrays.items()})


def rewrite(path, change):
    """Change the contents of a file, and give it the checksums of a valid one."""
    texts, arrays = own_contents(path)
    state = json.loads(texts["estimator"])
    change(state, arrays)
    write_model_file(path, Contents({**texts, "estimator": json.dumps(state)}, arrays))


def change_at(path, value):
    """Replace a value at a path, or change the array that it names by a function."""
    *before, last = (int(key) if key.isdigit() else key for key in path.split("."))

    def change(state, arrays):
        for key in before:
            state = state[key]
        if callable(value):
            arrays["changed"] = value(arrays[state[last]].copy())
            state[last] = "changed"
        else:
            state[last] = value

    return change


def item(where, value):
    """A function that changes an item of an array."""

    def change(array):
        array[where] = value
        return array

    return change


def first(value):
    """A function that changes the first item of an array."""
    return lambda array: item(0, value)(array.reshape(-1)).reshape(array.shape)


def shorter(array):
    return array[:-1].copy()


def as_text(text):
    return lambda array: np.frombuffer(text.encode(), np.uint8)


def as_type(dtype):
    return lambda array: array.astype(dtype)
