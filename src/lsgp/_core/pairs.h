// SPDX-License-Identifier: BSD-3-Clause
// All pairs of n rows: the covariance of an exact GP, and sums over its adjoint, for the evidence and
// its gradient. Matrices are symmetric: of each only the lower triangle is written and read, by rows;
// what lies above the diagonal may be anything. Vectors run along the columns of a row.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "simd.h"  // before the formulas, which take exp and sqrt from it
#include "formulas.h"

namespace lsgp {

constexpr int64_t LANES = Simd<double>::W;

// The first `count` elements of a row that may end there, and zeros.
inline VecD load_some(const double *from, int64_t count) {
  if (count >= LANES) return load(from);
  VecD v = {};
  std::memcpy(&v, from, size_t(count) * sizeof(double));
  return v;
}

// Columns of a matrix (n, c) one behind the other, each of `stride` elements, with zeros at its end.
struct Columns {
  int64_t n, c, stride;
  std::vector<double> values;

  Columns(int64_t n, int64_t c)
      : n(n), c(c), stride((n / LANES + 1) * LANES), values(size_t(c * stride)) {}

  Columns(const double *rows, int64_t n, int64_t c) : Columns(n, c) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k) values[size_t(k * stride + i)] = rows[i * c + k];
  }

  double *at(int64_t k, int64_t i) { return values.data() + k * stride + i; }
  const double *at(int64_t k, int64_t i) const { return values.data() + k * stride + i; }

  void add_to(double *rows) const {  // (n, c)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k) rows[i * c + k] += values[size_t(k * stride + i)];
  }
};

// [E1] of rows z (n, d): correlations, with a constant and slopes, and their derivatives by r².
inline void correlate_pairs(Kernel kernel, const double *z, int64_t n, int64_t d, double constant,
                            double slope, double *covariance, double *by_r2) {
  const Columns columns(z, n, d);
  with_kernel(kernel, [&](auto formula) {
    for (int64_t i = 0; i < n; ++i) {
      const double *own = z + i * d;
      for (int64_t j = 0; j <= i; j += LANES) {
        VecD r2 = {}, product = {};
        for (int64_t k = 0; k < d; ++k) {
          const VecD other = load(columns.at(k, j));
          const VecD difference = other - own[k];
          r2 += difference * difference;
          product += other * own[k];
        }
        const auto rho = decltype(formula)::at(r2);
        const VecD value = rho.value + (product * slope + constant);
        const int64_t left = i + 1 - j;
        const size_t bytes = size_t(left < LANES ? left : LANES) * sizeof(double);
        std::memcpy(covariance + i * n + j, &value, bytes);
        std::memcpy(by_r2 + i * n + j, &rho.derivative, bytes);
      }
    }
  });
}

// The adjoint G = ½ (inverse - left rightᵀ), left, right (n, r), as sums over pairs read it: each pair
// once, LANES columns of a row at a time.
class Adjoint {
public:
  // diagonal: (n,), written
  Adjoint(const double *inverse, const double *left, const double *right, int64_t n, int64_t r,
          double *diagonal)
      : inverse(inverse), left(left), n(n), r(r), others(right, n, r), diagonal(diagonal) {
    for (int64_t l = 0; l < LANES; ++l) lanes[l] = double(l);
  }

  // Row i from column j <= i on: what is left of the diagonal, and zeros.
  VecD read(int64_t i, int64_t j) {
    VecD g = load_some(inverse + i * n + j, n - j);
    for (int64_t k = 0; k < r; ++k) g -= load(others.at(k, j)) * left[i * r + k];
    g *= 0.5;
    if (i < j + LANES) {
      diagonal[i] = g[i - j];
      total_of_diagonal += g[i - j];
    }
    g = left_of_diagonal(g, i, j);
    total += g;
    return g;
  }

  // The same of any matrix. What is not left of the diagonal may be anything.
  VecD left_of_diagonal(VecD v, int64_t i, int64_t j) const {
    if (i >= j + LANES) return v;
    return lanes < double(i - j) ? v : VecD{};
  }

  // Of all that was read, in both triangles.
  double sum() const { return 2.0 * sum_of_lanes(total) + total_of_diagonal; }

private:
  const double *inverse, *left;
  int64_t n, r;
  Columns others;
  double *diagonal;
  double total_of_diagonal = 0;
  VecD total = {}, lanes = {};
};

// What sums over pairs leave: `diagonal` and `total` are written, the others added to.
struct PairSums {
  double *diagonal;     // (n,) of G
  double total;         // of all of G
  double *by_z;         // (n, d) G z; null: nobody asks for these two
  double *pairs;        // (n,) of the rows of P
  double *pairs_by_z;   // (n, d) P z
};

// Sums of G and of its products P with by_r2, whose diagonal is left out: a row is at no distance
// from itself.
inline void sum_pairs(const double *inverse, const double *by_r2, const double *left,
                      const double *right, int64_t r, const double *z, int64_t n, int64_t d,
                      PairSums &sums) {
  constexpr int64_t TOGETHER = 4;
  const Columns columns(z, n, d);
  Adjoint adjoint(inverse, left, right, n, r, sums.diagonal);
  Columns pairs(n, 1), pairs_by_z(n, d), by_z(n, sums.by_z ? d : 0);
  std::vector<VecD> of_rows(size_t(2 * TOGETHER * d));
  for (int64_t first = 0; first < n; first += TOGETHER) {
    const int64_t size = n - first < TOGETHER ? n - first : TOGETHER;
    VecD *row_pairs_by_z = of_rows.data(), *row_by_z = of_rows.data() + TOGETHER * d;
    for (VecD &v : of_rows) v = VecD{};
    VecD row_pairs[TOGETHER] = {};
    for (int64_t j = 0; j < first + size; j += LANES) {
      VecD G[TOGETHER] = {}, P[TOGETHER] = {};
      VecD column_pairs = load(pairs.at(0, j));
      for (int64_t a = 0; a < size; ++a) {
        const int64_t i = first + a;
        if (j > i) continue;
        G[a] = adjoint.read(i, j);
        P[a] = G[a] * adjoint.left_of_diagonal(load_some(by_r2 + i * n + j, n - j), i, j);
        row_pairs[a] += P[a];
        column_pairs += P[a];
      }
      store(pairs.at(0, j), column_pairs);
      // Products with z of these rows and of the columns.
      const auto multiply = [&](const VecD *M, Columns &of_columns, VecD *of_rows) {
        for (int64_t k = 0; k < d; ++k) {
          const VecD other = load(columns.at(k, j));
          VecD column = load(of_columns.at(k, j));
          for (int64_t a = 0; a < size; ++a) {
            column += M[a] * z[(first + a) * d + k];
            of_rows[a * d + k] += M[a] * other;
          }
          store(of_columns.at(k, j), column);
        }
      };
      multiply(P, pairs_by_z, row_pairs_by_z);
      if (sums.by_z) multiply(G, by_z, row_by_z);
    }
    for (int64_t a = 0; a < size; ++a) {
      const int64_t i = first + a;
      sums.pairs[i] += sum_of_lanes(row_pairs[a]);
      for (int64_t k = 0; k < d; ++k) {
        sums.pairs_by_z[i * d + k] += sum_of_lanes(row_pairs_by_z[a * d + k]);
        if (sums.by_z)
          sums.by_z[i * d + k] +=
              sum_of_lanes(row_by_z[a * d + k]) + sums.diagonal[i] * z[i * d + k];
      }
    }
  }
  pairs.add_to(sums.pairs);
  pairs_by_z.add_to(sums.pairs_by_z);
  if (sums.by_z) by_z.add_to(sums.by_z);
  sums.total = adjoint.sum();
}

}  // namespace lsgp
