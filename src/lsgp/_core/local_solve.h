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

// Arithmetic of one lane in plain numbers. Never inlined: in a loop over lanes the compiler would be
// free to contract a product and a sum in the lanes that it vectorizes, and not in those left over,
// and a result would depend on the lane, and so on the size of the block.
#define LSGP_SAME_FOR_ALL_LANES __attribute__((noinline))

struct Scale {
  double value, dof;
};

// [E6] The local scale, from the misfit yᵀα and the sum of min(w, 1).
template <class T>
LSGP_SAME_FOR_ALL_LANES Scale posterior_scale(const Problem<T> &problem, double misfit,
                                              double n_effective) {
  const double dof = problem.scale_dof + n_effective;
  if (!std::isfinite(problem.scale_dof)) return {problem.signal_variance, dof};
  return {(problem.scale_dof * problem.signal_variance + misfit) / dof, dof};
}

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
  // A column of the trend's basis with a pivot below this, relative to its diagonal, is implied by
  // the others; see method/trend.py.
  static constexpr T KNOWN_PIVOT = T(1e-10);
  // In single precision, pivots and latent variances below these, relative to their prior, have
  // lost too many digits, and the system is to be solved in double precision. Over 3,840 problems
  // (tests/test_precision.py) those above are off by at most 1.4 % of a latent standard deviation;
  // with 5e-5 for both it would be 6 %.
  static constexpr T PRECISE_PIVOT = T(2e-4), PRECISE_VARIANCE = T(1e-4);
  // Only double precision without a trend in the matrix has nowhere else to go than to jitter.
  bool is_last_resort() const { return sizeof(T) == 8 && !problem.has_trend_in_matrix(); }

  const Problem<T> &problem;
  Workspace<T> space;
  Area<V> area;
  int rows;         // rows in use, a multiple of TILE
  int first_absent; // rows below this are present in all lanes
  V h2;             // squared bandwidth
  int farthest[W];  // the neighbor that sets the adaptive bandwidth
  V n_effective;    // sum of min(w, 1)
  V mean_diagonal;  // of the covariance
  V trend_variance; // what the trend apart adds to the latent variance
  I not_finite;     // lanes with a neighbor whose squared distance is NaN or infinite

  LocalSolver(const Problem<T> &p, V *memory, int m, Kept kept = Kept::factor)
      : problem(p), space(memory, m, p.d, p.t, p.n_apart(), kept) {}

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
    const bool trend = problem.has_trend_in_matrix();
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
    for (int R = 0; R < space.A.n_rhs_tiles; R++) {
      V *row = space.A.row(space.A.n_tiles + R);
      for (int i = 0; i < rows; i++)
        for (int a = 0; a < TILE; a++) {
          const int which = R * TILE + a;
          V value = {};
          if (which == 0) value = cross_covariance<K>(i);
          else if (which <= problem.t) value = space.y[(which - 1) * capacity + i];
          else if (which <= problem.t + problem.n_apart()) value = basis(which - problem.t - 1, i);
          row[i * TILE + a] = value * space.present[i];
        }
    }
  }

  // [E1] k of neighbor i, averaged over the points of an area.
  template <class K> V cross_covariance(int i) const {
    const T c = T(problem.constant_variance);
    if (area.n_points == 0) return K::at(space.r2[i]).value + c;
    const int d = problem.d;
    const V *z = space.z + size_t(i) * d;
    V sum = {}, along = {};
    for (int p = 0; p < area.n_points; p++) sum += K::at(squared(z, area.offset + p * d)).value;
    for (int k = 0; k < d; k++) along += z[k] * area.center[k];
    return sum / T(area.n_points) + c + T(problem.slope_variance) * along;
  }

  // [E1] k00, averaged over the pairs of points of an area.
  V prior_variance() const {
    const V prior = splat(T(1 + problem.constant_variance));
    if (area.n_points == 0) return prior;
    const int d = problem.d, n = area.n_points;
    V sum = {}, center2 = {};
    with_kernel(problem.kernel, [&](auto kernel) {
      for (int p = 0; p < n; p++)
        for (int q = 0; q < p; q++)
          sum += decltype(kernel)::at(squared(area.offset + p * d, area.offset + q * d)).value;
    });
    for (int k = 0; k < d; k++) center2 += area.center[k] * area.center[k];
    return (sum + sum + T(n)) / (T(n) * T(n)) + T(problem.constant_variance) +
           T(problem.slope_variance) * center2;
  }

  V squared(const V *x, const V *y) const {
    V sum = {};
    for (int k = 0; k < problem.d; k++) sum += (x[k] - y[k]) * (x[k] - y[k]);
    return sum;
  }

  // h0 of [E10]: column p of H at the query, or averaged over its area.
  V basis_at_query(int p) const {
    const int k = problem.input_of(p);
    if (k < 0) return splat(T(1));
    return area.n_points == 0 ? V{} : area.center[k];
  }

  // Column p of H, the basis of the trend apart, at neighbor i.
  V basis(int p, int i) const {
    const int k = problem.input_of(p);
    return k < 0 ? splat(T(1)) : space.z[i * problem.d + k];
  }

  // Row `which` of the right-hand sides (0: cross-covariance, 1 .. t: targets, then the columns
  // of H), entry i.
  V &rhs(int which, int i) const {
    return space.A.row(space.A.n_tiles + which / TILE)[i * TILE + which % TILE];
  }
  V rhs_dot(int p, int q) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += rhs(p, i) * rhs(q, i);
    return sum;
  }

  // Assemble and factor. Lanes that fail are to be solved again, with more digits or with the trend
  // apart; where there is nothing else to try, with growing jitter.
  template <bool GRADIENT> void solve(int m, int *status) {
    const int capacity = Workspace<T>::rows_of(m);
    V mean_r2 = {}, n = {};
    for (int i = 0; i < rows; i++) {
      mean_r2 += space.r2[i] * space.present[i];
      n += space.present[i];
    }
    const V zero = {}, one = splat(T(1));
    const V trend = splat(T(problem.constant_variance)) +
        T(problem.slope_variance) * mean_r2 / (n > one ? n : one);
    mean_diagonal = one + trend;
    V jitter = {}, least = mean_diagonal;
    I failed = {};
    assemble<GRADIENT>(capacity, jitter);
    factor(space.A, mean_diagonal * SMALLEST_PIVOT, failed, least);
    I imprecise = (failed & ~not_finite) | (trend > T(LARGEST_TREND_IN_MATRIX));
    if (sizeof(T) == 4) imprecise |= (least < PRECISE_PIVOT * mean_diagonal) | not_finite;
    for (int l = 0; l < W; l++) status[l] = not_finite[l] ? STATUS_NOT_FINITE : STATUS_OK;
    if (!is_last_resort()) {
      for (int l = 0; l < W; l++)
        if (imprecise[l]) status[l] = STATUS_IMPRECISE;
    } else {
      failed &= ~not_finite;
      for (double level = FIRST_JITTER; any(failed); level *= 10) {
        // The step of the grid at which a lane succeeds depends on that lane alone.
        const bool is_over = level > LAST_JITTER * 2;
        for (int l = 0; l < W; l++) {
          if (!failed[l]) continue;
          status[l] = is_over ? STATUS_NOT_POSITIVE_DEFINITE : STATUS_JITTERED;
          jitter[l] = T(level) * mean_diagonal[l];
        }
        if (is_over) break;
        failed = I{};
        assemble<GRADIENT>(capacity, jitter);
        factor(space.A, mean_diagonal * SMALLEST_PIVOT, failed, least);
        failed &= ~not_finite;
      }
    }
    trend_variance = zero;
    if (problem.n_apart() > 0) put_back_trend(status);
    if (sizeof(T) == 4) {
      const V prior = prior_variance();
      const I small = ~(prior - rhs_dot(0, 0) + trend_variance > PRECISE_VARIANCE * prior);
      for (int l = 0; l < W; l++)
        if (small[l]) status[l] = STATUS_IMPRECISE;
    }
  }

  // [E10] The trend apart: with H̃, k̃, ỹ what forward substitution left of H, k, y, its coefficients
  // have the precision P = H̃ᵀH̃ + B⁻¹, the targets' are theta = P⁻¹H̃ᵀỹ, and the query's
  // kappa = P⁻¹e, of e = h₀ - H̃ᵀk̃, what the correlations do not predict of the basis at the query.
  // Leaves ỹ - H̃ theta in place of ỹ.
  void put_back_trend(int *status) {
    const int a = problem.n_apart(), t = problem.t, first = 1 + t;
    const V zero = {}, one = splat(T(1));
    V *kappa = space.coefficient;
    I undetermined = {}, imprecise = {};
    for (int p = 0; p < a; p++) {
      const V at_query = basis_at_query(p);
      const T precision = problem.precision_of(p);
      V *row = space.gram + p * a;
      for (int q = 0; q < p; q++) {
        V value = rhs_dot(first + p, first + q);
        for (int o = 0; o < q; o++) value -= row[o] * space.gram[q * a + o];
        row[q] = value * space.gram[q * a + q];
      }
      const V diagonal = rhs_dot(first + p, first + p) + precision;
      V pivot = diagonal;
      for (int q = 0; q < p; q++) pivot -= row[q] * row[q];
      imprecise |= ~(pivot > PRECISE_PIVOT * diagonal);
      // No pivot is below the prior's precision, but for rounding. Without a prior, a column that
      // others imply has no pivot: its coefficient is unknown.
      pivot = pivot > precision ? pivot : splat(precision);
      const I known = pivot > (precision > 0 ? zero : KNOWN_PIVOT * diagonal);
      row[p] = known ? one / sqrt(known ? pivot : one) : zero;
      for (int which = 0; which <= t; which++) {
        V value = which == 0 ? at_query - rhs_dot(first + p, 0) : rhs_dot(first + p, which);
        for (int q = 0; q < p; q++) value -= row[q] * space.coefficient[which * a + q];
        // The query depends on a coefficient that nothing is known of.
        if (which == 0)
          undetermined |= ~known & (value * value > std::numeric_limits<T>::epsilon() *
                                                        (diagonal + at_query));
        space.coefficient[which * a + p] = value * row[p];
      }
      trend_variance += kappa[p] * kappa[p];
    }
    for (int which = 0; which <= t; which++) {
      V *x = space.coefficient + which * a;
      for (int p = a - 1; p >= 0; p--) {
        for (int q = p + 1; q < a; q++) x[p] -= space.gram[q * a + p] * x[q];
        x[p] *= space.gram[p * a + p];
      }
    }
    for (int j = 0; j < t; j++) {
      const V *theta = this->theta(j);
      for (int i = 0; i < rows; i++) {
        V value = rhs(1 + j, i);
        for (int p = 0; p < a; p++) value -= theta[p] * rhs(first + p, i);
        rhs(1 + j, i) = value;
      }
    }
    for (int l = 0; l < W; l++) {
      if (status[l] > STATUS_JITTERED) continue;
      if (sizeof(T) == 4 && imprecise[l]) status[l] = STATUS_IMPRECISE;
      else if (undetermined[l]) status[l] = STATUS_UNDETERMINED;
    }
  }
  // beta of [E3], which the targets of the neighbors are multiplied by in the mean: (rows,).
  void coefficients(V *beta) const {
    for (int i = 0; i < rows; i++) beta[i] = rhs(0, i);
    const V *kappa = space.coefficient;  // [E10]
    for (int p = 0; p < problem.n_apart(); p++)
      for (int i = 0; i < rows; i++) beta[i] += kappa[p] * rhs(1 + problem.t + p, i);
    solve_transposed(space.A, beta);
  }

  const V *theta(int j) const { return space.coefficient + (1 + j) * problem.n_apart(); }

  V mean(int j) const {  // [E4]
    V sum = rhs_dot(0, 1 + j);
    if (problem.has_constant_apart) sum += theta(j)[0];
    for (int p = int(problem.has_constant_apart); area.n_points && p < problem.n_apart(); p++)
      sum += basis_at_query(p) * theta(j)[p];
    return sum;
  }
  V misfit(int j) const {  // yᵀα of [E6]
    V sum = rhs_dot(1 + j, 1 + j);
    for (int p = 0; p < problem.n_apart(); p++)
      sum += problem.precision_of(p) * theta(j)[p] * theta(j)[p];
    return sum;
  }
  V latent_variance() const {  // [E5]
    const V prior = prior_variance();
    const V variance = prior - rhs_dot(0, 0), floor = SMALLEST_VARIANCE * prior;
    return (variance > floor ? variance : floor) + trend_variance;
  }
};

}  // namespace lsgp
