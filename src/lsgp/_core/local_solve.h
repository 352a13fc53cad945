// SPDX-License-Identifier: BSD-3-Clause
// Local solves of W queries at a time, one per lane. The equation labels are those of the
// method page and of backends/local_system.py, which this file follows statement by statement.
#pragma once

#include <cstdint>

#include "losses.h"
#include "workspace.h"

namespace lsgp {

template <class T> struct LocalSolver {
  typedef typename Simd<T>::Vec V;
  typedef typename Simd<T>::Int I;
  typedef Limits<T> L;
  static constexpr int W = Simd<T>::W;

  const Problem<T> &problem;
  Memory<V> memory;
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

  LocalSolver(const Problem<T> &p, int m, Kept kept = Kept::factor)
      : problem(p), memory(Workspace<T>(nullptr, m, p.d, p.t, p.n_apart(), kept).n_vectors),
        space(memory.data, m, p.d, p.t, p.n_apart(), kept) {}

  // Fetch the neighbors of the group's queries; lanes without a query repeat the last one.
  void gather(const T *const *query, const int32_t *const *neighbors, int m) {
    const int d = problem.d, t = problem.t, capacity = Workspace<T>::rows_of(m);
    // By value, for compilers: nothing that is written here changes them.
    const Problem<T> given = problem;
    const Workspace<T> own = space;
    for (int l = 0; l < W; l++) {
      const T *at = query[l];
      for (int i = 0; i < capacity; i++) {
        const int32_t index = i < m ? neighbors[l][i] : -1;
        const T *x = index < 0 ? at : given.X + size_t(index) * d;
        for (int k = 0; k < d; k++) own.z[i * d + k][l] = x[k] - at[k];
        for (int j = 0; j < t; j++)
          own.y[j * capacity + i][l] = index < 0 ? T(0) : given.y[size_t(index) * t + j];
        own.noise[i][l] = index < 0 ? T(1) : given.noise[index];
        own.present[i][l] = index < 0 ? T(0) : T(1);
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
        z *= problem.inverse_lengthscale[k];
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
    const V unit = problem.weight_unit(h2);
    n_effective = zero;
    int last_present = -1;
    first_absent = rows;
    for (int i = 0; i < rows; i++) {
      const Weight<V> w = problem.weight_of(space.r2[i], h2, unit);
      const I in = (w.value > L::SMALLEST_WEIGHT) & (space.present[i] > zero);
      space.weight[i] = in ? w.value : zero;
      space.by_s[i] = in ? w.by_s : zero;
      space.by_decay[i] = in ? w.by_decay : zero;
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
    for (int l = 0; l < W; l++) status[l] = not_finite[l] ? STATUS_NOT_FINITE : STATUS_OK;
    for (double level = FIRST_JITTER;; level *= 10) {
      I failed = {};
      assemble<GRADIENT>(Workspace<T>::rows_of(m), jitter);
      factor(space.A, mean_diagonal * L::SMALLEST_PIVOT, failed, least);
      failed &= ~not_finite;
      if (!problem.is_last_resort()) {
        I imprecise = failed | (trend > T(LARGEST_TREND_IN_MATRIX));
        if (L::IS_SINGLE) imprecise |= (least < L::PRECISE_PIVOT * mean_diagonal) | not_finite;
        for (int l = 0; l < W; l++)
          if (imprecise[l]) status[l] = STATUS_IMPRECISE;
        break;
      }
      if (!any(failed)) break;
      // The step of the grid at which a lane succeeds depends on that lane alone.
      const bool is_over = level > LAST_JITTER * 2;
      for (int l = 0; l < W; l++) {
        if (!failed[l]) continue;
        status[l] = is_over ? STATUS_NOT_POSITIVE_DEFINITE : STATUS_JITTERED;
        jitter[l] = T(level) * mean_diagonal[l];
      }
      if (is_over) break;
    }
    trend_variance = zero;
    if (problem.n_apart() > 0) put_back_trend(status);
    if (L::IS_SINGLE) {
      const V prior = prior_variance();
      const I small = ~(prior - rhs_dot(0, 0) + trend_variance > L::PRECISE_VARIANCE * prior);
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
      imprecise |= ~(pivot > L::PRECISE_PIVOT * diagonal);
      // No pivot is below the prior's precision, but for rounding. Without a prior, a column that
      // others imply has no pivot: its coefficient is unknown.
      pivot = pivot > precision ? pivot : splat(precision);
      const I known = pivot > (precision > 0 ? zero : L::KNOWN_PIVOT * diagonal);
      row[p] = known ? one / sqrt(known ? pivot : one) : zero;
      for (int which = 0; which <= t; which++) {
        V value = which == 0 ? at_query - rhs_dot(first + p, 0) : rhs_dot(first + p, which);
        for (int q = 0; q < p; q++) value -= row[q] * space.coefficient[which * a + q];
        // The query depends on a coefficient that nothing is known of.
        if (which == 0)
          undetermined |= ~known & (value * value > L::EPSILON *
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
      if (L::IS_SINGLE && imprecise[l]) status[l] = STATUS_IMPRECISE;
      else if (undetermined[l]) status[l] = STATUS_UNDETERMINED;
    }
  }

  V *beta() const { return space.solution; }
  V *alpha(int j) const { return space.solution + size_t(1 + j) * rows; }

  // The solutions themselves [E3], which predictions do without: beta, which the targets of the
  // neighbors are multiplied by in the mean, and alphas, n in all.
  void back_substitute(int n) {
    const V *kappa = space.coefficient;
    for (int s = 0; s < n; s++) {
      V *x = space.solution + size_t(s) * rows;
      for (int i = 0; i < rows; i++) x[i] = rhs(s, i);
      // The part of a trend apart [E10] is in the targets' right-hand sides already.
      for (int p = 0; s == 0 && p < problem.n_apart(); p++)
        for (int i = 0; i < rows; i++) x[i] += kappa[p] * rhs(1 + problem.t + p, i);
      solve_transposed(space.A, x);
    }
  }
  // Of the neighbor that sets the adaptive bandwidth.
  V farthest_z(int k) const {
    V z;
    for (int l = 0; l < W; l++) z[l] = space.z[farthest[l] * problem.d + k][l];
    return z;
  }
  V total(const V *x) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += x[i];
    return sum;
  }
  V moment(const V *x, int k) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += x[i] * space.z[i * problem.d + k];
    return sum;
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
    const V variance = prior - rhs_dot(0, 0), floor = L::SMALLEST_VARIANCE * prior;
    return (variance > floor ? variance : floor) + trend_variance;
  }
};

}  // namespace lsgp
