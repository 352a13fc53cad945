// SPDX-License-Identifier: BSD-3-Clause
// What local solves are given and need: the problem, the memory of W queries, and their areas.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cholesky.h"
#include "simd.h"  // before the formulas, which take exp and sqrt from it
#include "formulas.h"
#include "predictive.h"

namespace lsgp {

constexpr int STATUS_OK = 0, STATUS_JITTERED = 1, STATUS_NOT_POSITIVE_DEFINITE = 2,
              STATUS_NOT_FINITE = 3, STATUS_IMPRECISE = 4, STATUS_UNDETERMINED = 5;
constexpr double FIRST_JITTER = 1e-12, LAST_JITTER = 1e-4;
// A trend of more variance, relative to the correlations', is kept apart from the matrix.
constexpr double LARGEST_TREND_IN_MATRIX = 100;
constexpr int N_SHARED_PARAMETERS = 6;

// Training data and hyperparameters; see LocalProblem and LocalModel in method/contract.py. The trend
// is in the matrix, where its variances count, or apart from it, where its precisions do.
template <class T> struct Problem {
  const T *X;      // (n, d)
  const T *y;      // (n, t)
  const T *noise;  // (n,)
  int d, t;
  Kernel kernel;
  Localizer localizer;
  const double *lengthscale;  // (d,)
  double signal_variance, noise_variance, localizer_decay, scale_dof,
      bandwidth /* scaled; 0: adaptive */, mean_lengthscale;
  bool normalize;
  double constant_variance, slope_variance;    // of the trend in the matrix; 0 if it is apart
  double constant_precision, slope_precision;  // of the trend apart; 0 is the unknown trend
  bool has_constant_apart, has_slope_apart;

  bool has_trend_in_matrix() const { return constant_variance != 0 || slope_variance != 0; }
  // Columns of H, the basis (1, z) of the trend apart.
  int n_apart() const { return int(has_constant_apart) + (has_slope_apart ? d : 0); }
  // The input that column p of H is the slope in; -1 for the constant.
  int input_of(int p) const { return p - int(has_constant_apart); }
  T precision_of(int p) const { return T(input_of(p) < 0 ? constant_precision : slope_precision); }
};

// What a workspace has room for beside the factor: the solutions of its systems, and what a loss
// needs of every pair of points.
enum class Kept { factor, solution, pairs };

// All that is needed for W queries of at most m neighbors. Arrays of vectors, aligned, carved
// out of one allocation; their sizes in vectors are in the comments.
template <class T> struct Workspace {
  typedef typename Simd<T>::Vec V;
  V *z;         // (rows, d) scaled differences to the query
  V *r2;        // (rows,) squared scaled distances
  V *weight;    // (rows,) localizer's value
  V *by_s;      // (rows,) its derivative in u²
  V *by_decay;  // (rows,) and in the decay
  V *present;   // (rows,) 1 where the point is in the system, else 0
  V *noise;     // (rows,) multiplier v of [E2]
  V *y;         // (t, rows)
  V *solution;  // (1 + t, rows) beta and the alphas
  V *adjoint;   // (1 + t, rows) their partners in the adjoint of A [E8]
  V *row_sum;   // (rows,) sums over pairs, of a score; kernel's derivative at the query, of others
  TiledTriangle<V> A;
  V *gram;         // (a, a) factor of the precision of the trend apart; its diagonal keeps 1/L
  V *coefficient;  // (1 + t, a) of the trend apart: kappa of the query, theta of the targets
  V *by_trend;     // (a,) adjoints of their squares (score only)
  V *slope;        // derivative of the kernel for every pair, in A's layout (score only)

  // At least one tile: a query without neighbors still has a system, of rows that are out of it.
  static int rows_of(int m) { return (std::max(m, 1) + TILE - 1) / TILE * TILE; }
  static int rhs_tiles_of(int t, int a) { return (1 + t + a + TILE - 1) / TILE; }

  static size_t size(int m, int d, int t, int a, Kept kept) {
    const size_t rows = rows_of(m), tiles = rows / TILE;
    const size_t matrix = TiledTriangle<V>::size(int(tiles), rhs_tiles_of(t, a));
    const bool solution = kept != Kept::factor, pairs = kept == Kept::pairs;
    return rows * (d + 6 + t + (solution ? 2 + t : 0) + (pairs ? 1 + t : 0)) +
           matrix * (pairs ? 2 : 1) + size_t(a) * (a + 1 + t + (pairs ? 1 : 0));
  }

  Workspace(V *p, int m, int d, int t, int a, Kept kept) {
    const size_t rows = rows_of(m);
    auto take = [&p](size_t n) { V *q = p; p += n; return q; };
    z = take(rows * d);
    r2 = take(rows);
    weight = take(rows);
    by_s = take(rows);
    by_decay = take(rows);
    present = take(rows);
    noise = take(rows);
    y = take(rows * t);
    A.n_tiles = int(rows / TILE);
    A.n_rhs_tiles = rhs_tiles_of(t, a);
    A.data = take(TiledTriangle<V>::size(A.n_tiles, A.n_rhs_tiles));
    gram = take(size_t(a) * a);
    coefficient = take(size_t(a) * (1 + t));
    solution = adjoint = row_sum = slope = by_trend = nullptr;
    if (kept != Kept::factor) {
      solution = take(rows * (1 + t));
      row_sum = take(rows);
    }
    if (kept == Kept::pairs) {
      by_trend = take(a);
      adjoint = take(rows * (1 + t));
      slope = take(TiledTriangle<V>::size(A.n_tiles, A.n_rhs_tiles));
    }
  }
};

// The points whose average a query stands for, W queries at a time; none: for itself alone.
template <class V> struct Area {
  int n_points = 0;
  V *offset = nullptr;  // (n_points, d) scaled differences to the query
  V *center = nullptr;  // (d,) their mean
};

}  // namespace lsgp
