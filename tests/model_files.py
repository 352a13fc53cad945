# SPDX-License-Identifier: BSD-3-Clause
"""Files of models whose contents are changed, with the checksums of valid ones."""

import json

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
