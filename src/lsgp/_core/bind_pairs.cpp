// SPDX-License-Identifier: BSD-3-Clause
// Covariances of all rows, and sums over them (pairs.h).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "pairs.h"

namespace nb = nanobind;

namespace {

template <class Number, int N>
using Array = nb::ndarray<Number, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

void require(bool is_true, const char *what) {
  if (!is_true) throw nb::value_error((std::string("pairs of rows: ") + what).c_str());
}

template <class A> void require_shape(A array, int64_t rows, int64_t columns, const char *what) {
  require(int64_t(array.shape(0)) == rows && int64_t(array.shape(1)) == columns, what);
}

void correlate(int kernel, Array<const double, 2> z, double constant, double slope,
               Array<double, 2> covariance, Array<double, 2> by_r2) {
  const int64_t n = z.shape(0);
  require(kernel >= 0 && kernel < lsgp::N_KERNELS, "there is no such kernel");
  require_shape(covariance, n, n, "covariance must have shape (n, n)");
  require_shape(by_r2, n, n, "by_r2 must have shape (n, n)");
  nb::gil_scoped_release release;
  lsgp::correlate_pairs(lsgp::Kernel(kernel), z.data(), n, z.shape(1), constant, slope,
                        covariance.data(), by_r2.data());
}

double sum(Array<const double, 2> inverse, Array<const double, 2> by_r2,
           Array<const double, 2> left, Array<const double, 2> right, Array<const double, 2> z,
           Array<double, 1> diagonal, Array<double, 2> by_z, Array<double, 1> pairs,
           Array<double, 2> pairs_by_z) {
  const int64_t n = z.shape(0), d = z.shape(1), r = left.shape(1);
  require_shape(inverse, n, n, "inverse must have shape (n, n)");
  require_shape(by_r2, n, n, "by_r2 must have shape (n, n)");
  require_shape(left, n, r, "left must have shape (n, r)");
  require_shape(right, n, r, "right must have shape (n, r)");
  require_shape(pairs_by_z, n, d, "pairs_by_z must have shape (n, d)");
  require(int64_t(diagonal.shape(0)) == n && int64_t(pairs.shape(0)) == n,
          "diagonal and pairs must have shape (n,)");
  const bool is_asked = by_z.shape(0) > 0;
  if (is_asked) require_shape(by_z, n, d, "by_z must have shape (n, d), or no rows");
  nb::gil_scoped_release release;
  lsgp::PairSums sums{diagonal.data(), 0.0, is_asked ? by_z.data() : nullptr, pairs.data(),
                      pairs_by_z.data()};
  lsgp::sum_pairs(inverse.data(), by_r2.data(), left.data(), right.data(), r, z.data(), n, d, sums);
  return sums.total;
}

}  // namespace

void bind_pairs(nb::module_ &m) {
  using namespace nb::literals;
  m.def("correlate_pairs", &correlate, "kernel"_a, "z"_a.noconvert(), "constant"_a, "slope"_a,
        "covariance"_a.noconvert(), "by_r2"_a.noconvert(),
        "The lower triangles of [E1] of rows z (n, d), and of its derivatives by r².");
  m.def("sum_pairs", &sum, "inverse"_a.noconvert(), "by_r2"_a.noconvert(), "left"_a.noconvert(),
        "right"_a.noconvert(), "z"_a.noconvert(), "diagonal"_a.noconvert(), "by_z"_a.noconvert(),
        "pairs"_a.noconvert(), "pairs_by_z"_a.noconvert(),
        "Adds up an adjoint (see pairs.h), and returns the sum of all of it.");
}
