# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx builds the documentation: `make docs`, warnings are errors."""

import inspect
import json
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import latex2mathml

import lsgp
from lsgp.inputs.estimator_settings import SETTINGS
from lsgp.inputs.setting import REQUIRED

PARTS = (lsgp.Hyperparameters, lsgp.Localizer, lsgp.Sphere, lsgp.Rotated, lsgp.Effort)
ESTIMATORS = (lsgp.LSGPRegressor, lsgp.LSGPClassifier)
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from comparison_report import substitutions  # noqa: E402

project = "lsgp"
author = "The lsgp developers"
copyright = "The lsgp developers"
version = release = lsgp.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["gallery/images"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3

default_role = "py:obj"  # `predict` in a docstring is a link where there is such a thing
add_module_names = False
autodoc_member_order = "bysource"
# The documentation is built without gigabytes of torch.
autodoc_mock_imports = ["botorch", "gpytorch", "linear_operator", "torch"]
autodoc_typehints = "none"  # types and shapes are in the docstrings
strip_signature_backslash = True  # else napoleon leaves `fitted_` without its underscore
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"lsgp {release}"
html_static_path = ["_static"]
html_css_files = ["lsgp.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"


def _stream_table():
    """The results of benchmarks/predict_stream.py as a table: numbers are never typed."""
    path = ROOT / "benchmarks" / "results" / "predict_stream.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    machine, model = results["machine"], results["model"]
    lines = [
        f"A model of {model['n_train']:,} rows, {model['n_inputs']} inputs and "
        f"{model['n_neighbors']} neighbors; {machine['n_cores']} cores, "
        f"{machine['instruction_set']}, a memory budget of {results['memory_budget_mb']:,.0f} MB, "
        f"lsgp {machine['versions']['lsgp']}:",
        "",
        "| rows | output | input file | time | processor time | peak memory |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for run in results["runs"]:
        lines.append(
            f"| {run['rows']:,} | {run['output']} | {run['input_mb']:,.1f} MB | "
            f"{run['seconds']:.1f} s | {run['processor_seconds']:.1f} s | "
            f"{run['peak_memory_mb']:,.0f} MB |"
        )
    return "\n".join(lines)


def _escaped(text):
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def _settings_table(settings, of_both=False):
    """One line per setting, from its record: what it is, and what it is by default."""
    lines = ["| setting | default | what it says |", "|---|---|---|"]
    for setting in settings:
        only = "" if len(setting.estimators) == 2 or not of_both else f" ({setting.estimators[0]})"
        default = "" if setting.default is REQUIRED else f"`{setting.default!r}`"
        said = _escaped(setting.first_sentence)
        lines.append(f"| `{setting.name}`{only} | {default} | {said} |")
    return "\n".join(lines)


def _methods_table(estimator):
    """One line per public method, from the first sentence of its docstring."""
    lines = ["| method | what it does |", "|---|---|"]
    for name in sorted(dir(estimator)):
        member = inspect.getattr_static(estimator, name)
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("lsgp") and function.__doc__:
            said = _escaped(inspect.cleandoc(function.__doc__).partition("\n\n")[0])
            lines.append(f"| `{name}` | {said} |")
    return "\n".join(lines)


myst_substitutions = (
    {"predict_stream": _stream_table()}
    | {"settings": _settings_table(SETTINGS, of_both=True)}
    | {f"fields_of_{kind.__name__}": _settings_table(kind.settings) for kind in PARTS}
    | {f"methods_of_{kind.__name__}": _methods_table(kind) for kind in ESTIMATORS}
    | substitutions()
)


def _mathml(tex, as_block):
    return latex2mathml.tex2mathml(tex, as_block=as_block)


def _visit_math(self, node):
    self.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _visit_math_block(self, node):
    self.body.append(f'<div class="math">{_mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    # Formulas become MathML when the pages are built: no script, and pages work offline.
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
