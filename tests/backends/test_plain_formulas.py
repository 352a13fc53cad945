# SPDX-License-Identifier: BSD-3-Clause
"""`formulas.h` as plain C++: no vectors, no includes, the values of the Python formulas."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from backend_checks import each_dtype

from lsgp import _core
from lsgp.method import localizers
from lsgp.method.kernels import KERNELS
from lsgp.method.localizers import LOCALIZERS

FORMULAS = Path(_core.__file__).parent / "formulas.h"
COMPILER = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)

#: All that a plain number needs: its own exp and sqrt, and to be its own element.
SOURCE = f"""
#include <math.h>
namespace lsgp {{ template <class V> using Element = V; }}
#include "{FORMULAS.as_posix()}"
using namespace lsgp;

template <class T> void kernels(int code, const T *r2, int n, T *values) {{  // (n, 2)
  with_kernel(Kernel(code), [&](auto kernel) {{
    for (int i = 0; i < n; i++) {{
      const Correlation<T> at = decltype(kernel)::at(r2[i]);
      values[2 * i] = at.value, values[2 * i + 1] = at.derivative;
    }}
  }});
}}

template <class T> void localizers(int code, T decay, const T *s, int n, T *values) {{  // (n, 3)
  for (int i = 0; i < n; i++) {{
    const Weight<T> at = localize(Localizer(code), s[i], decay);
    values[3 * i] = at.value, values[3 * i + 1] = at.by_s, values[3 * i + 2] = at.by_decay;
  }}
}}

extern "C" {{
void kernels_float64(int c, const double *x, int n, double *v) {{ kernels(c, x, n, v); }}
void kernels_float32(int c, const float *x, int n, float *v) {{ kernels(c, x, n, v); }}
void localizers_float64(int c, double k, const double *x, int n, double *v) {{
  localizers(c, k, x, n, v);
}}
void localizers_float32(int c, float k, const float *x, int n, float *v) {{
  localizers(c, k, x, n, v);
}}
}}
"""
NUMBERS = {"float64": ctypes.c_double, "float32": ctypes.c_float}
#: Relative; exp(-a) has the relative error of its argument times a, which is up to 17 here.
TOLERANCES = {"float64": 1e-14, "float32": 5e-6}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if os.name == "nt":
        pytest.skip("the compiler is not asked for a shared library on Windows")
    if COMPILER is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("formulas")
    source, target = folder / "formulas.cpp", folder / "formulas.so"
    source.write_text(SOURCE, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run([COMPILER, *flags, source, "-o", target], check=True)
    return ctypes.CDLL(str(target))


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def test_formulas_include_nothing():
    assert "#include" not in FORMULAS.read_text(encoding="utf-8")


@each_dtype
@pytest.mark.parametrize("name", KERNELS)
def test_plain_kernels_are_those_of_python(library, dtype, name):
    code = list(KERNELS).index(name)
    r2 = np.concatenate([[0.0], np.geomspace(1e-6, 60.0, 200)]).astype(dtype)
    values = np.empty((len(r2), 2), dtype)
    getattr(library, f"kernels_{dtype}")(code, pointer(r2), len(r2), pointer(values))
    expected = np.stack(KERNELS[name](r2.astype(float)), axis=1)
    np.testing.assert_allclose(values, expected, rtol=TOLERANCES[dtype], atol=1e-14)


@each_dtype
@pytest.mark.parametrize("name", LOCALIZERS)
@pytest.mark.parametrize("decay", [0.0, 1.7])
def test_plain_localizers_are_those_of_python(library, dtype, name, decay):
    code = list(LOCALIZERS).index(name)
    s = np.concatenate([[0.0, 1e-13], np.linspace(0.01, 1.0, 100), [1.01, 9.0]]).astype(dtype)
    values = np.empty((len(s), 3), dtype)
    number = NUMBERS[dtype](decay)
    getattr(library, f"localizers_{dtype}")(code, number, pointer(s), len(s), pointer(values))
    expected = np.stack(localizers.evaluate(name, s.astype(float), number.value), axis=1)
    np.testing.assert_allclose(values, expected, rtol=TOLERANCES[dtype], atol=1e-14)
