// SPDX-License-Identifier: BSD-3-Clause
// What local solves need beside the problem: the memory of W queries, and their areas.
#pragma once

#include <algorithm>
#include <new>

#include "cholesky.h"
#include "simd.h"  // before the formulas, which take exp and sqrt from it
#include "formulas.h"
#include "problem.h"

namespace lsgp {

// What a workspace has room for beside the factor: the solutions of its systems, and what a loss
// needs of every pair of points.
enum class Kept { factor, solution, pairs };

// Vectors need the alignment of the widest register.
template <class V> struct Memory {
  V *data;
  explicit Memory(size_t n)
      : data(static_cast<V *>(::operator new(n * sizeof(V), std::align_val_t(64)))) {}
  ~Memory() { ::operator delete(data, std::align_val_t(64)); }
  Memory(const Memory &) = delete;
};

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

  size_t n_vectors = 0;  // of all of these

  // At least one tile: a query without neighbors still has a system, of rows that are out of it.
  static int rows_of(int m) { return (std::max(m, 1) + TILE - 1) / TILE * TILE; }

  // memory: where they are; null: only their number is asked for
  Workspace(V *memory, int m, int d, int t, int a, Kept kept) {
    const bool has_solution = kept != Kept::factor, has_pairs = kept == Kept::pairs;
    const size_t rows = rows_of(m);
    auto take = [&](size_t n, bool is_needed = true) {
      V *taken = memory && is_needed ? memory + n_vectors : nullptr;
      n_vectors += is_needed ? n : 0;
      return taken;
    };
    z = take(rows * d);
    r2 = take(rows);
    weight = take(rows);
    by_s = take(rows);
    by_decay = take(rows);
    present = take(rows);
    noise = take(rows);
    y = take(rows * t);
    A.n_tiles = int(rows / TILE);
    A.n_rhs_tiles = (1 + t + a + TILE - 1) / TILE;
    A.data = take(A.size());
    gram = take(size_t(a) * a);
    coefficient = take(size_t(a) * (1 + t));
    solution = take(rows * (1 + t), has_solution);
    row_sum = take(rows, has_solution);
    by_trend = take(a, has_pairs);
    adjoint = take(rows * (1 + t), has_pairs);
    slope = take(A.size(), has_pairs);
  }
};

// The points whose average a query stands for, W queries at a time; none: for itself alone.
template <class V> struct Area {
  int n_points = 0;
  V *offset = nullptr;  // (n_points, d) scaled differences to the query
  V *center = nullptr;  // (d,) their mean
};

}  // namespace lsgp
