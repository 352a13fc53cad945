// SPDX-License-Identifier: BSD-3-Clause
// Covariances of all rows, and sums over them (pairs.h).
#include "arrays.h"
#include "pairs.h"

namespace nb = nanobind;
using namespace lsgp;

namespace {

// The lower triangles (n, n) of [E1] of rows z (n, d), and of its derivatives by r².
void correlate(int kernel, In<double, 2> z, double constant, double slope,
               Out<double, 2> covariance, Out<double, 2> by_r2) {
  const int64_t n = z.shape(0);
  require(kernel >= 0 && kernel < N_KERNELS, "there is no such kernel");
  require(has_shape(covariance, n, n), "covariance must have shape (n, n)");
  require(has_shape(by_r2, n, n), "by_r2 must have shape (n, n)");
  nb::gil_scoped_release release;
  correlate_pairs(Kernel(kernel), z.data(), n, z.shape(1), constant, slope, covariance.data(),
                  by_r2.data());
}

// Adds up an adjoint (see pairs.h), and returns the sum of all of it.
double sum(In<double, 2> inverse, In<double, 2> by_r2,
           In<double, 2> left, In<double, 2> right, In<double, 2> z,
           Out<double, 1> diagonal, Out<double, 2> by_z, Out<double, 1> pairs,
           Out<double, 2> pairs_by_z) {
  const int64_t n = z.shape(0), d = z.shape(1), r = left.shape(1);
  require(has_shape(inverse, n, n), "inverse must have shape (n, n)");
  require(has_shape(by_r2, n, n), "by_r2 must have shape (n, n)");
  require(has_shape(left, n, r), "left must have shape (n, r)");
  require(has_shape(right, n, r), "right must have shape (n, r)");
  require(has_shape(pairs_by_z, n, d), "pairs_by_z must have shape (n, d)");
  require(has_shape(diagonal, n) && has_shape(pairs, n),
          "diagonal and pairs must have shape (n,)");
  const bool is_asked = by_z.shape(0) > 0;
  if (is_asked) require(has_shape(by_z, n, d), "by_z must have shape (n, d), or no rows");
  nb::gil_scoped_release release;
  PairSums sums{diagonal.data(), 0.0, is_asked ? by_z.data() : nullptr, pairs.data(),
                pairs_by_z.data()};
  sum_pairs(inverse.data(), by_r2.data(), left.data(), right.data(), r, z.data(), n, d, sums);
  return sums.total;
}

}  // namespace

void bind_pairs(nb::module_ &m) {
  define(m, "correlate_pairs", &correlate);
  define(m, "sum_pairs", &sum);
}
