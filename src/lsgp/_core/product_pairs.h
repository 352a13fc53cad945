// SPDX-License-Identifier: BSD-3-Clause
// As pairs.h, of a product over inputs of a constant and a correlation of that input alone [E12]:
//   rho = prod_j (c_j + rho_j) / (c_j + 1).
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "pairs.h"

namespace lsgp {

// The factors of one row with LANES others, and their derivatives, for each of d inputs.
template <class Formula> class Factors {
public:
  Factors(const double *constants, int64_t d)
      : d(d), constants(constants), unit(size_t(d)), difference(size_t(d)), value(size_t(d)),
        derivative(size_t(d)), varying(size_t(d)), before(size_t(d)) {
    for (int64_t k = 0; k < d; ++k) unit[size_t(k)] = 1.0 / (1.0 + constants[k]);
  }

  // The product of all; `columns` begin at the others.
  VecD multiply(const double *own, const Columns &columns, int64_t j) {
    VecD product = VecD{} + 1.0;
    for (int64_t k = 0; k < d; ++k) {
      const size_t at = size_t(k);
      difference[at] = load_any(columns.at(k, j)) - own[k];
      const auto rho = Formula::at(difference[at] * difference[at]);
      before[at] = product;
      value[at] = rho.value * unit[at] + constants[k] * unit[at];
      derivative[at] = rho.derivative * unit[at];
      varying[at] = (1.0 - rho.value) * (constants[k] * unit[at] * unit[at]);
      product *= value[at];
    }
    return product;
  }

  // Calls f(k, difference, derivative by its square, derivative by log c) for each input, with the
  // other factors in the derivatives: by products of those before and behind, none of which is
  // divided by, as it may be 0.
  template <class F> void differentiate(F &&f) const {
    VecD behind = VecD{} + 1.0;
    for (int64_t k = d; k-- > 0;) {
      const size_t at = size_t(k);
      const VecD others = before[at] * behind;
      f(k, difference[at], derivative[at] * others, varying[at] * others);
      behind *= value[at];
    }
  }

private:
  int64_t d;
  const double *constants;
  std::vector<double> unit;
  std::vector<VecD> difference, value, derivative, varying, before;
};

// [E1] of rows z (n, d), with a constant and slopes of the trend.
inline void correlate_products(Kernel kernel, const double *z, const double *constants, int64_t n,
                               int64_t d, double constant, double slope, double *covariance) {
  const Columns columns(z, n, d);
  with_kernel(kernel, [&](auto formula) {
    Factors<decltype(formula)> factors(constants, d);
    for (int64_t i = 0; i < n; ++i) {
      const double *own = z + i * d;
      for (int64_t j = 0; j <= i; j += LANES) {
        VecD product = {};
        for (int64_t k = 0; k < d; ++k) product += load_any(columns.at(k, j)) * own[k];
        const VecD value = factors.multiply(own, columns, j) + (product * slope + constant);
        const int64_t left = i + 1 - j;
        const size_t bytes = size_t(left < LANES ? left : LANES) * sizeof(double);
        std::memcpy(covariance + i * n + j, &value, bytes);
      }
    }
  });
}

// What sums over pairs leave; all but `total` are added to.
struct ProductSums {
  double *diagonal;      // (n,) of G
  double total;          // of all of G
  double *by_z;          // (n, d) G z; null: nobody asks for these two
  double *by_logarithm;  // (2 d,) of G with the derivatives by log lengthscales and log constants
  double *by_rows;       // (n, d) of G with those by z
};

// Sums of G with derivatives of the correlations, which are 0 on the diagonal.
inline void sum_products(Kernel kernel, const double *inverse, const double *left,
                         const double *right, int64_t r, const double *z, const double *constants,
                         int64_t n, int64_t d, ProductSums &sums) {
  const Columns columns(z, n, d);
  Adjoint adjoint(inverse, left, right, n, r, sums.diagonal);
  Columns by_columns(n, d), by_z(n, sums.by_z ? d : 0);
  std::vector<VecD> by_lengthscale(static_cast<size_t>(d)), by_constant(static_cast<size_t>(d));
  std::vector<VecD> by_row(static_cast<size_t>(d)), row_by_z(static_cast<size_t>(d));
  with_kernel(kernel, [&](auto formula) {
    Factors<decltype(formula)> factors(constants, d);
    for (int64_t i = 0; i < n; ++i) {
      const double *own = z + i * d;
      for (VecD &v : by_row) v = VecD{};
      for (VecD &v : row_by_z) v = VecD{};
      for (int64_t j = 0; j <= i; j += LANES) {
        const VecD g = adjoint.read(i, j);
        factors.multiply(own, columns, j);
        factors.differentiate([&](int64_t k, VecD difference, VecD by_r2, VecD by_log_constant) {
          const VecD moved = g * by_r2 * difference;
          by_lengthscale[size_t(k)] += moved * difference;
          by_constant[size_t(k)] += g * by_log_constant;
          by_row[size_t(k)] += moved;
          store_any(by_columns.at(k, j), load_any(by_columns.at(k, j)) + moved);
        });
        if (!sums.by_z) continue;
        for (int64_t k = 0; k < d; ++k) {
          row_by_z[size_t(k)] += g * load_any(columns.at(k, j));
          store_any(by_z.at(k, j), load_any(by_z.at(k, j)) + g * own[k]);
        }
      }
      for (int64_t k = 0; k < d; ++k) {
        sums.by_rows[i * d + k] -= 4.0 * sum_of(by_row[size_t(k)]);
        if (sums.by_z)
          sums.by_z[i * d + k] += sum_of(row_by_z[size_t(k)]) + sums.diagonal[i] * own[k];
      }
    }
  });
  for (double &v : by_columns.values) v *= 4.0;
  by_columns.add_to(sums.by_rows);
  if (sums.by_z) by_z.add_to(sums.by_z);
  for (int64_t k = 0; k < d; ++k) {
    // Of both triangles.
    sums.by_logarithm[k] += -4.0 * sum_of(by_lengthscale[size_t(k)]);
    sums.by_logarithm[d + k] += 2.0 * sum_of(by_constant[size_t(k)]);
  }
  sums.total = adjoint.sum();
}

}  // namespace lsgp
