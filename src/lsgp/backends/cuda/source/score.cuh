// SPDX-License-Identifier: BSD-3-Clause
// Leave-one-out loss and its gradient [E8], by the threads of a block, as in _core/local_score.h.
#pragma once

namespace lsgp {

template <class T> struct LocalScore : LocalSystem<T> {
  typedef LocalSystem<T> Base;
  using Base::farthest, Base::h2, Base::misfit, Base::n_effective, Base::problem, Base::rows,
      Base::space, Base::kappa, Base::theta, Base::warp, Base::n_warps;
  static constexpr int INPUTS_AT_ONCE = 8;

  T by_variance, by_dof, by_signal_variance, by_noise_variance, by_scale_dof;

  LocalScore(const Problem<T> &problem, Workspace<T> &space) : Base(problem, space) {}

  T *beta() const { return space.solution; }
  T *alpha(int j) const { return space.solution + (1 + j) * space.capacity; }
  T *beta_partner() const { return space.adjoint; }
  T *alpha_partner(int j) const { return space.adjoint + (1 + j) * space.capacity; }
  T &by_mean(int j) const { return space.column[2 * problem.t + j]; }
  T &by_misfit(int j) const { return space.column[3 * problem.t + j]; }
  T *by_trend() const { return space.diagonal; }

  // The loss, its mean over the t columns, and the partners u, v of [E8].
  double evaluate(Objective objective, const T *observed, T target_noise) {
    const int t = problem.t, n_apart = problem.n_apart();
    const T tau2 = this->latent_variance();
    ColumnLoss total = {};
    for (int j = rank(); j < t; j += n_threads()) {
      const ColumnLoss L = column_loss(problem, objective, observed[j] - this->mean(j), tau2,
                                       target_noise, problem.noise_unit(h2), misfit(j),
                                       n_effective);
      by_mean(j) = T(L.by_mean);
      by_misfit(j) = T(L.by_misfit);
      total.value += L.value;
      total.by_variance += L.by_variance;
      total.by_dof += L.by_dof;
      total.by_signal_variance += L.by_signal_variance;
      total.by_noise_variance += L.by_noise_variance;
      total.by_scale_dof += L.by_scale_dof;
    }
    const double loss = sum_of(total.value);
    by_variance = T(sum_of(total.by_variance));
    by_dof = T(sum_of(total.by_dof));
    by_signal_variance = T(sum_of(total.by_signal_variance));
    by_noise_variance = T(sum_of(total.by_noise_variance));
    by_scale_dof = T(sum_of(total.by_scale_dof));
    __syncthreads();
    for (int i = rank(); i < rows; i += n_threads()) {
      const T b = beta()[i];
      T u = by_variance * b, adjoint = T(-2) * by_variance * b;
      for (int j = 0; j < t; j++) {
        const T a = alpha(j)[i], half = T(-0.5) * by_mean(j);
        alpha_partner(j)[i] = half * b - by_misfit(j) * a;
        u += half * a;
        adjoint += by_mean(j) * a;
      }
      beta_partner()[i] = u;
      space.adjoint_k[i] = adjoint;
    }
    for (int p = rank(); p < n_apart; p += n_threads()) {  // [E11] of the trend apart
      T sum = by_variance * kappa()[p] * kappa()[p];
      for (int j = 0; j < t; j++)
        sum += by_mean(j) * kappa()[p] * theta(j)[p] - by_misfit(j) * theta(j)[p] * theta(j)[p];
      by_trend()[p] = sum;
    }
    __syncthreads();
    return loss;
  }

  // gradient: (d + N_SHARED_PARAMETERS,)
  void differentiate(double *gradient) {
    const int d = problem.d, t = problem.t;
    const T s2n = T(problem.noise_variance), inverse_h2 = h2 > 0 ? T(1) / h2 : T(0);
    T sum_k = 0, by_noise = 0, by_decay = 0, through_h = 0, through_factor = 0;
    T *coefficient = space.r2;  // of z², at each point
    for (int i = rank(); i < rows; i += n_threads()) {
      const T adjoint_k = space.adjoint_k[i];
      sum_k += adjoint_k;
      T diagonal = beta()[i] * beta_partner()[i];  // adj(A)_ii
      for (int j = 0; j < t; j++) diagonal += alpha(j)[i] * alpha_partner(j)[i];
      const bool in = space.present[i] > 0;
      const T w = in ? space.weight[i] : T(1);
      const T noise = s2n * space.noise[i] / w;
      by_noise += in ? diagonal * noise : T(0);
      const T by_weight = in ? (w < T(1) ? by_dof : T(0)) - diagonal * noise / w : T(0);
      by_decay += by_weight * space.by_decay[i];
      const T by_s = by_weight * space.by_s[i];
      through_h += by_s * space.r2[i] * inverse_h2;
      through_factor += by_weight * space.weight[i];
      coefficient[i] =
          (adjoint_k * this->correlation(space.r2[i]).derivative + by_s * inverse_h2) * T(-2);
    }
    weigh_pairs();
    sum_k = sum_of(sum_k);
    by_noise = sum_of(by_noise) + by_noise_variance;
    by_decay = sum_of(by_decay);
    through_h = sum_of(through_h);
    through_factor = sum_of(through_factor);
    sum_slopes();
    for (int k0 = 0; k0 < d; k0 += INPUTS_AT_ONCE) {
      T sums[INPUTS_AT_ONCE];
      through_distances(k0, sums);
      for (int c = 0; c < INPUTS_AT_ONCE && k0 + c < d; c++) {
        const int k = k0 + c;
        T sum = sums[c] - T(2 * problem.slope_variance) * space.slopes[k];
        if (problem.has_slope_apart)
          sum -= T(2 * problem.slope_precision) * by_trend()[problem.has_constant_apart + k];
        T by_log_h2 = T(-2.0 / d);
        if (problem.bandwidth == 0) {
          const T z = space.z[k * space.capacity + farthest];
          by_log_h2 = h2 > 0 ? T(-2) * z * z / h2 : T(0);
        }
        sum -= through_h * by_log_h2;
        if (problem.normalize)
          sum += (by_noise_variance - through_factor) * (T(0.5) * by_log_h2 + T(1.0 / d));
        if (rank() == 0) gradient[k] = sum;
      }
    }
    T by_constant = by_variance + sum_k, by_slope = 0;
    by_constant += total(beta()) * total(beta_partner());
    for (int j = 0; j < t; j++) by_constant += total(alpha(j)) * total(alpha_partner(j));
    if (problem.slope_variance > 0)
      for (int k = 0; k < d; k++) by_slope += space.slopes[k];
    by_constant *= T(problem.constant_variance);
    by_slope *= T(problem.slope_variance);
    for (int p = 0; p < problem.n_apart(); p++)
      (problem.input_of(p) < 0 ? by_constant : by_slope) += problem.precision_of(p) * by_trend()[p];
    if (rank()) return;
    gradient[d] = by_signal_variance;
    gradient[d + 1] = by_noise;
    gradient[d + 2] = by_constant;
    gradient[d + 3] = by_slope;
    gradient[d + 4] = by_decay * T(problem.localizer_decay);
    gradient[d + 5] = by_scale_dof;
  }

  T total(const T *x) const {
    T sum = 0;
    for (int i = rank(); i < rows; i += n_threads()) sum += x[i];
    return sum_of(sum);
  }

  // For each input, the sum over all pairs of adj(A)_ij z_ik z_jk, which factors.
  void sum_slopes() {
    for (int k = warp(); k < problem.d; k += n_warps()) {
      T sum = moment(beta(), k) * moment(beta_partner(), k);
      for (int j = 0; j < problem.t; j++) sum += moment(alpha(j), k) * moment(alpha_partner(j), k);
      if (rank() % WARP == 0) space.slopes[k] = sum;
    }
    __syncthreads();
  }
  T moment(const T *x, int k) const {
    T sum = 0;
    for (int i = rank() % WARP; i < rows; i += WARP)
      sum += x[i] * space.z[k * space.capacity + i];
    return reduce_lanes(sum, Sum{});
  }

  // B_ij = adj(A)_ij rho'_ij for the pairs i > j, in place of the factor, which nobody needs now.
  void weigh_pairs() {
    __syncthreads();
    for (TriangleWalk at(space.A.n_tiles); at.is_there(); at.next()) {
      T tile[TILE_SIZE], adjoint[TILE_SIZE] = {};
      this->squared_distances(at.I, at.J, tile);
      for (int c = 0; c <= problem.t; c++) {
        const Four<T> x = load_four(space.solution + c * space.capacity + at.I * TILE),
                      y = load_four(space.adjoint + c * space.capacity + at.J * TILE);
#pragma unroll
        for (int b = 0; b < TILE; b++)
#pragma unroll
          for (int a = 0; a < TILE; a++) adjoint[b * TILE + a] += x.at[a] * y.at[b];
      }
      with_kernel(problem.kernel, [&](auto kernel) {
#pragma unroll
        for (int e = 0; e < TILE_SIZE; e++) tile[e] = decltype(kernel)::at(tile[e]).derivative;
      });
#pragma unroll
      for (int e = 0; e < TILE_SIZE; e++) {
        const bool is_pair = at.I > at.J || e % TILE > e / TILE;
        tile[e] = is_pair ? adjoint[e] * tile[e] : T(0);
      }
      store_tile(space.A.tile(at.I, at.J), tile);
    }
  }

  // The gradient in the log lengthscales of some inputs, through distances: of k, of the weights
  // and, -4 times the sum over i > j of B_ij (z_ik - z_jk)², of the pairs.
  void through_distances(int k0, T *sums) {
    const int n = problem.d - k0 < INPUTS_AT_ONCE ? problem.d - k0 : INPUTS_AT_ONCE;
#pragma unroll
    for (int c = 0; c < INPUTS_AT_ONCE; c++) sums[c] = 0;
    for (TriangleWalk at(space.A.n_tiles); at.is_there(); at.next()) {
      T B[TILE_SIZE];
      load_tile(B, space.A.tile(at.I, at.J));
#pragma unroll
      for (int c = 0; c < INPUTS_AT_ONCE; c++) {
        if (c >= n) continue;
        const T *z = space.z + (k0 + c) * space.capacity;
        const Four<T> x = load_four(z + at.I * TILE), y = load_four(z + at.J * TILE);
#pragma unroll
        for (int b = 0; b < TILE; b++)
#pragma unroll
          for (int a = 0; a < TILE; a++) {
            const T difference = x.at[a] - y.at[b];
            sums[c] += B[b * TILE + a] * difference * difference;
          }
      }
    }
#pragma unroll
    for (int c = 0; c < INPUTS_AT_ONCE; c++) {
      if (c >= n) continue;
      sums[c] *= T(-4);
      const T *z = space.z + (k0 + c) * space.capacity;
      for (int i = rank(); i < rows; i += n_threads()) sums[c] += space.r2[i] * z[i] * z[i];
      sums[c] = sum_of(sums[c]);
    }
  }
};

}  // namespace lsgp

// Loss of predicting each target row from its neighbors, and its gradient [E8].
extern "C" __global__ void score(
    LSGP_PROBLEM_ARGUMENTS(T), const int *targets, const int *neighbors, long long n_queries,
    int m, int objective, T *scratch, long long n_scratch, long long n_vectors, double *loss,
    double *gradient, int *status) {
  LSGP_WORKSPACE(1 + t, true);
  for (long long q = blockIdx.x; q < n_queries; q += gridDim.x) {
    const long long row = targets[q];
    lsgp::LocalScore<T> system(problem, space);
    system.gather(X + row * d, neighbors + q * m, m);
    const int code = system.solve();
    system.back_substitute(1 + t);
    const double value =
        system.evaluate(lsgp::Objective(objective), y + row * t, noise[row]);
    system.differentiate(gradient + q * (d + lsgp::N_SHARED_PARAMETERS));
    if (lsgp::rank() == 0) {
      loss[q] = value;
      status[q] = code;
    }
    __syncthreads();
  }
}
