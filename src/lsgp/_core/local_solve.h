// SPDX-License-Identifier: BSD-3-Clause
// Local solves of W queries at a time, one per lane. The equation labels are those of the
// method page and of backends/reference.py, which this file follows statement by statement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cholesky.h"
#include "vector_math.h"  // before the formulas, which take exp and sqrt from it
#include "formulas.h"
#include "losses.h"

namespace lsgp {

constexpr int STATUS_OK = 0, STATUS_JITTERED = 1, STATUS_NOT_POSITIVE_DEFINITE = 2,
              STATUS_NOT_FINITE = 3;
constexpr double FIRST_JITTER = 1e-12, LAST_JITTER = 1e-4;
constexpr int N_SHARED_PARAMETERS = 6;

// Training data and hyperparameters; see LocalProblem and LocalModel in local_problem.py.
template <class T> struct Problem {
  const T *X;      // (n, d)
  const T *y;      // (n, t)
  const T *noise;  // (n,)
  int d, t;
  Kernel kernel;
  Localizer localizer;
  const double *lengthscale;  // (d,)
  double signal_variance, noise_variance, constant_variance, slope_variance, localizer_decay,
      scale_dof, bandwidth /* scaled; 0: adaptive */, mean_lengthscale;
  bool normalize;
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
  V *row_sum;   // (rows,) sums over pairs, in the gradient
  TiledTriangle<V> A;
  V *slope;  // derivative of the kernel for every pair, in A's layout (score only)

  // At least one tile: a query without neighbors still has a system, of rows that are out of it.
  static int rows_of(int m) { return (std::max(m, 1) + TILE - 1) / TILE * TILE; }
  static int rhs_tiles_of(int t) { return (t + 1 + TILE - 1) / TILE; }

  static size_t size(int m, int d, int t, bool gradient) {
    const size_t rows = rows_of(m), tiles = rows / TILE;
    const size_t matrix = TiledTriangle<V>::size(int(tiles), rhs_tiles_of(t));
    return rows * (d + 6 + t + (gradient ? 2 * (1 + t) + 1 : 0)) + matrix * (gradient ? 2 : 1);
  }

  Workspace(V *p, int m, int d, int t, bool gradient) {
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
    A.n_rhs_tiles = rhs_tiles_of(t);
    A.data = take(TiledTriangle<V>::size(A.n_tiles, A.n_rhs_tiles));
    solution = adjoint = row_sum = slope = nullptr;
    if (gradient) {
      solution = take(rows * (1 + t));
      adjoint = take(rows * (1 + t));
      row_sum = take(rows);
      slope = take(TiledTriangle<V>::size(A.n_tiles, A.n_rhs_tiles));
    }
  }
};

template <class T> struct LocalSolver {
  typedef typename Simd<T>::Vec V;
  typedef typename Simd<T>::Int I;
  static constexpr int W = Simd<T>::W;
  // Below this a weight is as good as zero, and its square may underflow: the point is out.
  static constexpr T SMALLEST_WEIGHT = sizeof(T) == 8 ? T(1e-100) : T(1e-15);
  // Rounding may push the latent variance below zero: this, relative to the prior's, is its floor.
  static constexpr T SMALLEST_VARIANCE = 16 * std::numeric_limits<T>::epsilon();
  // A pivot below this, relative to the mean diagonal of the covariance, is but rounding.
  static constexpr T SMALLEST_PIVOT = 16 * std::numeric_limits<T>::epsilon();

  const Problem<T> &problem;
  Workspace<T> space;
  int rows;         // rows in use, a multiple of TILE
  int first_absent; // rows below this are present in all lanes
  V h2;             // squared bandwidth
  int farthest[W];  // the neighbor that sets the adaptive bandwidth
  V n_effective;    // sum of min(w, 1)
  V mean_diagonal;  // of the covariance
  I not_finite;     // lanes with a neighbor whose squared distance is NaN or infinite

  LocalSolver(const Problem<T> &p, V *memory, int m, bool gradient)
      : problem(p), space(memory, m, p.d, p.t, gradient) {}

  // Fetch the neighbors of the group's queries; lanes without a query repeat the last one.
  void gather(const T *const *query, const int32_t *const *neighbors, int m) {
    const int d = problem.d, t = problem.t, capacity = Workspace<T>::rows_of(m);
    for (int l = 0; l < W; l++) {
      for (int i = 0; i < capacity; i++) {
        const int32_t index = i < m ? neighbors[l][i] : -1;
        const T *x = index < 0 ? query[l] : problem.X + size_t(index) * d;
        for (int k = 0; k < d; k++) space.z[i * d + k][l] = x[k] - query[l][k];
        for (int j = 0; j < t; j++)
          space.y[j * capacity + i][l] = index < 0 ? T(0) : problem.y[size_t(index) * t + j];
        space.noise[i][l] = index < 0 ? T(1) : problem.noise[index];
        space.present[i][l] = index < 0 ? T(0) : T(1);
      }
    }
    rows = capacity;
  }

  // Distances to the query, bandwidth and weights.
  void weigh() {
    const int d = problem.d;
    const V zero = {}, one = splat(T(1));
    h2 = zero;
    not_finite = I{};
    for (int l = 0; l < W; l++) farthest[l] = 0;
    for (int i = 0; i < rows; i++) {
      V sum = zero;
      for (int k = 0; k < d; k++) {
        V &z = space.z[i * d + k];
        z *= T(1 / problem.lengthscale[k]);
        sum += z * z;
      }
      space.r2[i] = sum;
      not_finite |= ~(sum - sum == zero);
      const I farther = (sum > h2) & (space.present[i] > zero);
      if (any(farther))
        for (int l = 0; l < W; l++)
          if (farther[l]) farthest[l] = i;
      h2 = farther ? sum : h2;
    }
    if (problem.bandwidth > 0) h2 = splat(T(problem.bandwidth * problem.bandwidth));
    const V factor = problem.normalize
        ? one / (sqrt(h2 > zero ? h2 : one) * T(problem.mean_lengthscale)) : one;
    n_effective = zero;
    int last_present = -1;
    first_absent = rows;
    for (int i = 0; i < rows; i++) {
      const V s = h2 > zero ? space.r2[i] / h2 : zero;
      Weight<V> w = localize(problem.localizer, s, T(problem.localizer_decay));
      // All neighbors on top of the query: the bandwidth is 0, and each counts as one.
      w.value = (h2 > zero ? w.value : one) * factor;
      const I in = (w.value > SMALLEST_WEIGHT) & (space.present[i] > zero);
      space.weight[i] = in ? w.value : zero;
      space.by_s[i] = in ? w.by_s * factor : zero;
      space.by_decay[i] = in ? w.by_decay * factor : zero;
      space.present[i] = in ? one : zero;
      const V counted = w.value < one ? w.value : one;
      n_effective += in ? counted : zero;
      if (any(in)) last_present = i;
      if (any(~in) && i < first_absent) first_absent = i;
    }
    // Points that are out of the system in all lanes need no rows.
    rows = std::max(TILE, (last_present + TILE) / TILE * TILE);
    space.A.n_tiles = rows / TILE;
  }

  // [E1], [E2] into the tiles, with the given jitter per lane on the diagonal.
  template <bool GRADIENT> void assemble(int capacity, V jitter) {
    with_kernel(problem.kernel, [&](auto kernel) {
      for (int R = 0; R < space.A.n_tiles; R++) {
        V *row = space.A.row(R);
        squared_distances(R, row);
        finish_row<decltype(kernel), GRADIENT>(R, row, jitter);
      }
      right_hand_sides<decltype(kernel)>(capacity);
    });
  }

  void squared_distances(int R, V *row) const {
    const int d = problem.d;
    for (int J = 0; J <= R; J++) {
      Tile<V> acc = {};
      const V *x = space.z + size_t(R) * TILE * d, *y = space.z + size_t(J) * TILE * d;
      for (int k = 0; k < d; k++) {
#pragma GCC unroll 4
        for (int b = 0; b < TILE; b++) {
#pragma GCC unroll 4
          for (int a = 0; a < TILE; a++) {
            const V difference = x[a * d + k] - y[b * d + k];
            acc[b * TILE + a] += difference * difference;
          }
        }
      }
#pragma GCC unroll 16
      for (int e = 0; e < TILE * TILE; e++) row[J * TILE * TILE + e] = acc[e];
    }
  }

  template <class K, bool GRADIENT> void finish_row(int R, V *row, V jitter) {
    const V c = splat(T(problem.constant_variance)), half_b = splat(T(0.5 * problem.slope_variance));
    const V zero = {}, one = splat(T(1));
    const bool trend = problem.constant_variance > 0 || problem.slope_variance > 0;
    V *slope = GRADIENT ? space.slope + (row - space.A.data) : nullptr;
    const V *r2 = space.r2 + R * TILE;
    for (int j = 0; j < (R + 1) * TILE; j++) {
#pragma GCC unroll 4
      for (int a = 0; a < TILE; a++) {
        V &entry = row[j * TILE + a];
        const V pair = entry;
        const Correlation<V> rho = K::at(pair);
        if (GRADIENT) slope[j * TILE + a] = rho.derivative;
        V value = rho.value;
        // zᵢ·zⱼ from the three squared distances.
        if (trend) value += c + half_b * (r2[a] + space.r2[j] - pair);
        entry = value;
      }
    }
    // Points out of the system: a row of a diagonal matrix.
    if ((R + 1) * TILE > first_absent) {
      for (int j = 0; j < (R + 1) * TILE; j++)
        for (int a = 0; a < TILE; a++)
          row[j * TILE + a] *= space.present[j] * space.present[R * TILE + a];
    }
    const V noise_variance = splat(T(problem.noise_variance));
    for (int a = 0; a < TILE; a++) {
      const int i = R * TILE + a;
      const I in = space.present[i] > zero;
      const V weight = in ? space.weight[i] : one;
      V &entry = row[i * TILE + a];
      const V trended = one + c + half_b * (r2[a] + r2[a]) + jitter;
      entry = in ? trended + noise_variance * space.noise[i] / weight : mean_diagonal;
    }
  }

  template <class K> void right_hand_sides(int capacity) {
    const V c = splat(T(problem.constant_variance));
    for (int R = 0; R < space.A.n_rhs_tiles; R++) {
      V *row = space.A.row(space.A.n_tiles + R);
      for (int i = 0; i < rows; i++)
        for (int a = 0; a < TILE; a++) {
          const int which = R * TILE + a;
          V value = {};
          if (which == 0) value = K::at(space.r2[i]).value + c;
          else if (which <= problem.t) value = space.y[(which - 1) * capacity + i];
          row[i * TILE + a] = value * space.present[i];
        }
    }
  }

  // Row `which` of the right-hand sides (0: cross-covariance, 1 .. t: targets), entry i.
  const V &rhs(int which, int i) const {
    return space.A.row(space.A.n_tiles + which / TILE)[i * TILE + which % TILE];
  }
  V rhs_dot(int p, int q) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += rhs(p, i) * rhs(q, i);
    return sum;
  }

  // Assemble and factor, with growing jitter in the lanes that fail.
  template <bool GRADIENT> void solve(int m, int *status) {
    const int capacity = Workspace<T>::rows_of(m);
    V mean_r2 = {}, n = {};
    for (int i = 0; i < rows; i++) {
      mean_r2 += space.r2[i] * space.present[i];
      n += space.present[i];
    }
    const V one = splat(T(1));
    mean_diagonal = splat(T(1 + problem.constant_variance)) +
        T(problem.slope_variance) * mean_r2 / (n > one ? n : one);
    V jitter = {};
    for (int l = 0; l < W; l++) status[l] = not_finite[l] ? STATUS_NOT_FINITE : STATUS_OK;
    double level = FIRST_JITTER;
    for (bool first = true;; first = false) {
      I failed = {};
      assemble<GRADIENT>(capacity, jitter);
      factor(space.A, mean_diagonal * SMALLEST_PIVOT, failed);
      failed &= ~not_finite;
      if (!any(failed)) return;
      // The step of the grid at which a lane succeeds depends on that lane alone.
      const bool last = !first && level > LAST_JITTER * 0.5;
      if (!first) level *= 10;
      for (int l = 0; l < W; l++) {
        if (!failed[l]) continue;
        status[l] = last ? STATUS_NOT_POSITIVE_DEFINITE : STATUS_JITTERED;
        jitter[l] = T(level) * mean_diagonal[l];
      }
      if (last) return;
    }
  }

  V latent_variance() const {  // [E5]
    const T prior = T(1 + problem.constant_variance);
    const V variance = prior - rhs_dot(0, 0), floor = splat(SMALLEST_VARIANCE * prior);
    return variance > floor ? variance : floor;
  }
};

}  // namespace lsgp
