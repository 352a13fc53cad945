// SPDX-License-Identifier: BSD-3-Clause
// Leave-one-out loss and its gradient [E8]. The adjoint of A has rank 1 + t,
//   adj(A)_ij = beta_i u_j + sum_t alpha_ti v_tj   (symmetric),
// so no inverse is formed, and every sum over pairs that does not involve the kernel's
// derivative factors into sums over points.
#pragma once

#include "local_solve.h"

namespace lsgp {

template <class T> struct LocalScorer : LocalSolver<T> {
  typedef LocalSolver<T> Base;
  typedef typename Base::V V;
  typedef typename Base::I I;
  using Base::problem, Base::space, Base::rows, Base::h2, Base::farthest, Base::n_effective;
  using Base::beta, Base::alpha, Base::total, Base::moment;
  static constexpr int W = Base::W;

  // Derivatives of the loss with respect to what a local solve returns; one per lane.
  V by_variance;  // of tau² [E5]
  V by_dof;
  V by_signal_variance, by_noise_variance, by_scale_dof;  // direct terms, in logarithms

  LocalScorer(const Problem<T> &p, int m) : Base(p, m, Kept::pairs) {}

  V *beta_partner() const { return space.adjoint; }
  V *alpha_partner(int j) const { return space.adjoint + size_t(1 + j) * rows; }

  // Loss of each lane's target row, its mean over the t columns, and the partners u, v of [E8].
  void evaluate(Objective objective, const size_t *target, double *loss) {
    this->back_substitute(1 + problem.t);
    const int t = problem.t, n_apart = problem.n_apart();
    const V tau2 = this->latent_variance(), *kappa = space.coefficient, *b = beta();
    by_variance = by_dof = by_signal_variance = by_noise_variance = by_scale_dof = V{};
    for (int l = 0; l < W; l++) loss[l] = 0;
    V *u = beta_partner();
    V *k_adjoint = space.row_sum;  // [E8] of k, until pairs are summed there
    for (int i = 0; i < rows; i++) u[i] = k_adjoint[i] = V{};
    for (int p = 0; p < n_apart; p++) space.by_trend[p] = V{};
    for (int j = 0; j < t; j++) {
      const V mean = this->mean(j), misfit = this->misfit(j);
      V by_mean = {}, by_misfit = {};
      for (int l = 0; l < W; l++) {
        const ColumnLoss L =
            column_loss(problem, objective, problem.y[target[l] * t + j] - mean[l], tau2[l],
                        problem.noise[target[l]], problem.noise_unit(h2[l]), misfit[l],
                        n_effective[l]);
        loss[l] += L.value;
        by_mean[l] = T(L.by_mean);
        by_misfit[l] = T(L.by_misfit);
        by_variance[l] += T(L.by_variance);
        by_dof[l] += T(L.by_dof);
        by_signal_variance[l] += T(L.by_signal_variance);
        by_noise_variance[l] += T(L.by_noise_variance);
        by_scale_dof[l] += T(L.by_scale_dof);
      }
      V *v = alpha_partner(j);
      const V *a = alpha(j), *theta = this->theta(j), half = by_mean * T(-0.5);
      for (int i = 0; i < rows; i++) {
        v[i] = half * b[i] - by_misfit * a[i];
        u[i] += half * a[i];
        k_adjoint[i] += by_mean * a[i];
      }
      for (int p = 0; p < n_apart; p++)  // [E11] of the trend apart
        space.by_trend[p] += by_mean * kappa[p] * theta[p] - by_misfit * theta[p] * theta[p];
    }
    for (int i = 0; i < rows; i++) {
      u[i] += by_variance * b[i];
      k_adjoint[i] -= (by_variance + by_variance) * b[i];
    }
    for (int p = 0; p < n_apart; p++) space.by_trend[p] += by_variance * kappa[p] * kappa[p];
  }

  // gradient: (W, d + N_SHARED_PARAMETERS)
  void differentiate(double *gradient) {
    const int d = problem.d, t = problem.t, p = d + N_SHARED_PARAMETERS;
    const V zero = {}, one = splat(T(1));
    const T s2n = T(problem.noise_variance);
    V sum_k = zero, by_noise = by_noise_variance, by_decay = zero, through_h = zero,
      through_factor = zero;
    // Per point: z² coefficients go to r2 (its last use), pair sums to row_sum.
    V *coefficient = space.r2;
    with_kernel(problem.kernel, [&](auto kernel) {
      typedef decltype(kernel) K;
      for (int i = 0; i < rows; i++) {
        const V k_adjoint = space.row_sum[i];
        sum_k += k_adjoint;
        V diagonal = beta()[i] * beta_partner()[i];  // adj(A)_ii
        for (int j = 0; j < t; j++) diagonal += alpha(j)[i] * alpha_partner(j)[i];
        const I in = space.present[i] > zero;
        const V w = in ? space.weight[i] : one;
        const V noise = s2n * space.noise[i] / w;
        by_noise += in ? diagonal * noise : zero;
        V by_weight = (w < one ? by_dof : zero) - diagonal * noise / w;
        by_weight = in ? by_weight : zero;
        by_decay += by_weight * space.by_decay[i];
        const V by_s = by_weight * space.by_s[i];
        const V inverse_h2 = h2 > zero ? one / h2 : zero;
        through_h += by_s * space.r2[i] * inverse_h2;
        through_factor += by_weight * space.weight[i];
        coefficient[i] = (k_adjoint * K::at(space.r2[i]).derivative + by_s * inverse_h2) * T(-2);
        space.row_sum[i] = zero;
      }
    });
    for (int R = 0; R < space.A.n_tiles; R++) weigh_pairs(R);
    for (int i = 0; i < rows; i++) coefficient[i] -= T(4) * space.row_sum[i];

    for (int k = 0; k < d; k++) {
      V sum = zero;
      for (int i = 0; i < rows; i++) {
        const V z = space.z[i * d + k];
        sum += coefficient[i] * z * z;
      }
      // The slope's b zᵢ·zⱼ: sums over pairs factor.
      sum -= T(2 * problem.slope_variance) * slope_sum(k);
      if (problem.has_slope_apart)
        sum -= T(2 * problem.slope_precision) * space.by_trend[problem.has_constant_apart + k];
      V by_log_h2 = splat(T(-2.0 / d));
      if (problem.bandwidth == 0) {
        const V z = this->farthest_z(k);
        by_log_h2 = h2 > zero ? T(-2) * z * z / h2 : zero;
      }
      sum -= through_h * by_log_h2;
      if (problem.normalize)
        sum += (by_noise_variance - through_factor) * (T(0.5) * by_log_h2 + T(1.0 / d));
      for (int l = 0; l < W; l++) gradient[l * p + k] = sum[l];
    }
    add_pair_products(gradient, p);

    V by_constant = by_variance + sum_k, by_slope = zero;
    by_constant += total(beta()) * total(beta_partner());
    for (int j = 0; j < t; j++) by_constant += total(alpha(j)) * total(alpha_partner(j));
    if (problem.slope_variance > 0)
      for (int k = 0; k < d; k++) by_slope += slope_sum(k);
    by_constant *= T(problem.constant_variance);
    by_slope *= T(problem.slope_variance);
    for (int p = 0; p < problem.n_apart(); p++)
      (problem.input_of(p) < 0 ? by_constant : by_slope) +=
          problem.precision_of(p) * space.by_trend[p];
    const V shared[N_SHARED_PARAMETERS] = {
        by_signal_variance, by_noise, by_constant, by_slope,
        by_decay * T(problem.localizer_decay), by_scale_dof};
    for (int e = 0; e < N_SHARED_PARAMETERS; e++)
      for (int l = 0; l < W; l++) gradient[l * p + d + e] = shared[e][l];
  }

  // Sum over all pairs of adj(A)_ij z_ik z_jk.
  V slope_sum(int k) const {
    V sum = moment(beta(), k) * moment(beta_partner(), k);
    for (int j = 0; j < problem.t; j++) sum += moment(alpha(j), k) * moment(alpha_partner(j), k);
    return sum;
  }

  // B_ij = adj(A)_ij rho'_ij for the pairs i > j of a tile row, in place of rho'; and its sums.
  // With them, sum over i > j of B_ij (z_ik - z_jk)² is a sum over points of row_sum z², less
  // twice the sum of z_ik (B z)_ik, which add_pair_products does as a small matrix product.
  void weigh_pairs(int R) {
    V *B = space.slope + (space.A.row(R) - space.A.data);
    V own[TILE] = {};
    for (int j = 0; j < (R + 1) * TILE; j++) {
      V column = {};
#pragma GCC unroll 4
      for (int a = 0; a < TILE; a++) {
        const int i = R * TILE + a;
        V value = beta()[i] * beta_partner()[j];
        for (int c = 0; c < problem.t; c++) value += alpha(c)[i] * alpha_partner(c)[j];
        value *= B[j * TILE + a];
        if (j >= i) value = V{};
        B[j * TILE + a] = value;
        own[a] += value;
        column += value;
      }
      space.row_sum[j] += column;
    }
    for (int a = 0; a < TILE; a++) space.row_sum[R * TILE + a] += own[a];
  }

  // gradient_k += 8 sum over i of z_ik sum over j < i of B_ij z_jk.
  void add_pair_products(double *gradient, int p) {
    int k = 0;
    for (; k + 4 <= problem.d; k += 4) pair_products<4>(k, gradient, p);
    if (k + 2 <= problem.d) pair_products<2>(k, gradient, p), k += 2;
    if (k < problem.d) pair_products<1>(k, gradient, p);
  }

  template <int C> void pair_products(int k0, double *gradient, int p) {
    const int d = problem.d;
    V sum[C] = {};
    for (int R = 0; R < space.A.n_tiles; R++) {
      const V *B = space.slope + (space.A.row(R) - space.A.data);
      V acc[TILE][C] = {};
      const V *z = space.z + k0;
      for (int j = 0; j < (R + 1) * TILE; j++, z += d) {
#pragma GCC unroll 4
        for (int a = 0; a < TILE; a++)
#pragma GCC unroll 4
          for (int c = 0; c < C; c++) acc[a][c] += B[j * TILE + a] * z[c];
      }
      for (int a = 0; a < TILE; a++)
        for (int c = 0; c < C; c++) sum[c] += acc[a][c] * space.z[(R * TILE + a) * d + k0 + c];
    }
    for (int c = 0; c < C; c++)
      for (int l = 0; l < W; l++) gradient[l * p + k0 + c] += 8 * double(sum[c][l]);
  }
};

}  // namespace lsgp
