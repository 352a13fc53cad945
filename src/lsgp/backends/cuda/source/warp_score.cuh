// SPDX-License-Identifier: BSD-3-Clause
// Leave-one-out loss and its gradient [E8] of small systems, a warp for each; see score.cuh.
//
// Of 32 rows each lane has all entries of its row, above the diagonal too, where they are those below
// it once more: sums over pairs take half of each, instead of asking which side it is on.
#pragma once

namespace lsgp {

template <class T, int M> struct WarpScore : WarpSystem<T, M, true> {
  typedef WarpSystem<T, M, true> Base;
  typedef WarpMemory<T, M> Memory;
  using Base::farthest, Base::h2, Base::lane, Base::memory, Base::mixed, Base::n_effective,
      Base::present, Base::problem, Base::r2, Base::rows, Base::wide;
  static constexpr bool HAS_LOW = Base::HAS_LOW;
  static constexpr int N_MIXED = Base::N_MIXED, W = Base::PANEL_WIDTH;
  static constexpr int HIGH = Base::HIGH, LOW = Base::LOW;

  T alpha[2], beta[2], of_alpha[2], of_beta[2];  // of the lane's rows, and their partners in [E8]
  T by_mean, by_variance, by_misfit, by_dof, by_noise_variance;

  WarpScore(const Problem<T> &problem, Memory &memory, int lane) : Base(problem, memory, lane) {}

  void back_substitute() {
#pragma unroll
    for (int s = 0; s < 2; s++) alpha[s] = this->of_y_kept[s], beta[s] = this->of_k_kept[s];
    __syncwarp();
#pragma unroll
    for (int p = Base::N_PANELS - 1; p >= 0; p--)
      if (p * W < rows) backward_panel(p);
  }
  void backward_panel(const int p) {
    const int j = p * W, s = Base::is_low_panel(p) ? LOW : HIGH;
    const T *row = this->share_rows(p);
    T x[W], z[W];  // beta and alpha of the rows of the panel
#pragma unroll
    for (int a = W - 1; a >= 0; a--) {
      const int owner = Base::owner_of(p, a);
      x[a] = from_lane(beta[s], owner), z[a] = from_lane(alpha[s], owner);
#pragma unroll
      for (int b = a + 1; b < W; b++) {
        const T entry =
            from_lane(this->entry(Base::is_low_panel(p), j + a), Base::owner_of(p, b));
        x[a] -= entry * x[b], z[a] -= entry * z[b];
      }
      const T inverse = from_lane(this->inverse[s], owner);
      x[a] *= inverse, z[a] *= inverse;
    }
    const int high = Base::high_row(lane);
#pragma unroll
    for (int a = 0; a < W; a++) {
      if (lane == Base::owner_of(p, a)) beta[s] = x[a], alpha[s] = z[a];
      if (HAS_LOW && lane < j) {
        const T entry = row[a * M + lane];
        beta[LOW] -= entry * x[a], alpha[LOW] -= entry * z[a];
      }
      if ((!HAS_LOW || j > 32) && high < j) {
        const T entry = row[a * M + high];
        beta[HIGH] -= entry * x[a], alpha[HIGH] -= entry * z[a];
      }
    }
  }

  // The loss, and the gradient in what follows the lengthscales, as far as it is known here.
  double evaluate(Objective objective, T observed, T target_noise, double *gradient) {
    const ColumnLoss loss =
        column_loss(problem, objective, observed - this->yk, this->latent_variance(), target_noise,
                    problem.noise_unit(h2), this->yy, n_effective);
    by_mean = T(loss.by_mean);
    by_variance = T(loss.by_variance);
    by_misfit = T(loss.by_misfit);
    by_dof = T(loss.by_dof);
    by_noise_variance = T(loss.by_noise_variance);
    if (lane == 0) {
      gradient[problem.d] = loss.by_signal_variance;
      gradient[problem.d + 5] = loss.by_scale_dof;
    }
    return loss.value;
  }

  void differentiate(const T *query, int i_high, int i_low, double *gradient) {
    const int index[2] = {i_high, HAS_LOW ? i_low : -1}, d = problem.d;
    const T inverse_h2 = h2 > 0 ? T(1) / h2 : T(0), half = T(-0.5) * by_mean;
    T sum_k = 0, by_noise = 0, by_decay = 0, through_h = 0, through_factor = 0, coefficient[2];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const bool in = present[s] > 0;
      of_alpha[s] = half * beta[s] - by_misfit * alpha[s];
      of_beta[s] = half * alpha[s] + by_variance * beta[s];
      const T adjoint_k = by_mean * alpha[s] - T(2) * by_variance * beta[s];
      sum_k += adjoint_k;
      const T diagonal = beta[s] * of_beta[s] + alpha[s] * of_alpha[s];  // adj(A)_ii
      const Weight<T> w = problem.weight_of(r2[s], h2, problem.weight_unit(h2));
      const T noise = in ? T(problem.noise_variance) * problem.noise[index[s]] / w.value : T(0);
      by_noise += diagonal * noise;
      const T by_weight = in ? (w.value < T(1) ? by_dof : T(0)) - diagonal * noise / w.value : T(0);
      by_decay += in ? by_weight * w.by_decay : T(0);
      const T by_s = in ? by_weight * w.by_s : T(0);
      through_h += by_s * r2[s] * inverse_h2;
      through_factor += in ? by_weight * w.value : T(0);
      T derivative = 0;
      with_kernel(problem.kernel,
                  [&](auto kernel) { derivative = decltype(kernel)::at(r2[s]).derivative; });
      coefficient[s] = (adjoint_k * derivative + by_s * inverse_h2) * T(-2);
    }
    through_h = reduce_lanes(through_h, Sum{});
    through_factor = reduce_lanes(through_factor, Sum{});
    weigh_pairs(query, i_high, i_low);
    T by_slope = 0;
    for (int k0 = 0; k0 < d; k0 += Memory::CHUNK) {
      // What was placed last is still there.
      if (d > Memory::CHUNK) this->place_chunk(query, i_high, i_low, k0);
      const int n = d - k0 < Memory::CHUNK ? d - k0 : Memory::CHUNK;
#pragma unroll 1
      for (int c = 0; c < n; c++) {
        const T *z = memory.z + c * Memory::STRIDE;
        T sum = through_distances(z, coefficient);
        if (problem.slope_variance > 0) {
          const T slope =
              moment(z, beta) * moment(z, of_beta) + moment(z, alpha) * moment(z, of_alpha);
          by_slope += slope;
          sum -= T(2 * problem.slope_variance) * slope;
        }
        T by_log_h2 = T(-2.0 / d);
        if (problem.bandwidth == 0) by_log_h2 = T(-2) * z[farthest] * z[farthest] * inverse_h2;
        sum -= through_h * by_log_h2;
        if (problem.normalize)
          sum += (by_noise_variance - through_factor) * (T(0.5) * by_log_h2 + T(1.0 / d));
        if (lane == 0) gradient[k0 + c] = sum;
      }
    }
    by_noise = reduce_lanes(by_noise, Sum{}) + by_noise_variance;
    by_decay = reduce_lanes(by_decay, Sum{});
    sum_k = reduce_lanes(sum_k, Sum{});
    const T by_constant = by_variance + sum_k + total(beta) * total(of_beta) +
                          total(alpha) * total(of_alpha);
    if (lane) return;
    gradient[d + 1] = by_noise;
    gradient[d + 2] = T(problem.constant_variance) * by_constant;
    gradient[d + 3] = T(problem.slope_variance) * by_slope;
    gradient[d + 4] = T(problem.localizer_decay) * by_decay;
  }

  T total(const T (&x)[2]) const { return reduce_lanes(x[0] + x[1], Sum{}); }
  T moment(const T *z, const T (&x)[2]) const {
    const T high = x[HIGH] * z[Base::high_row(lane)], low = HAS_LOW ? x[LOW] * z[lane] : T(0);
    return reduce_lanes(high + low, Sum{});
  }

  // B_ij = adj(A)_ij rho'_ij in place of the factor, half of it where a pair comes twice.
  void weigh_pairs(const T *query, int i_high, int i_low) {
    T *u = memory.panel, *v = memory.panel + M;  // no panel is needed any more
    __syncwarp();
    u[Base::high_row(lane)] = of_beta[HIGH], v[Base::high_row(lane)] = of_alpha[HIGH];
    if (HAS_LOW) u[lane] = of_beta[LOW], v[lane] = of_alpha[LOW];
    this->measure(query, i_high, i_low);  // waits for the other lanes
    const T b = HAS_LOW ? beta[HIGH] : T(0.5) * beta[HIGH];
    const T a = HAS_LOW ? alpha[HIGH] : T(0.5) * alpha[HIGH];
    with_kernel(problem.kernel, [&](auto kernel) {
      typedef decltype(kernel) K;
#pragma unroll
      for (int j = 0; j < 32; j += 4) {
        const Four<T> u_up = load_four(u + j), v_up = load_four(v + j),
                      u_down = load_four(u + (M - 4 - j)), v_down = load_four(v + (M - 4 - j));
#pragma unroll
        for (int e = 0; e < 4; e++) {
          wide[j + e] = (b * u_up.at[e] + a * v_up.at[e]) * K::at(wide[j + e]).derivative;
          if (!HAS_LOW) continue;
          const bool low = this->is_low(j + e);
          const T adjoint =
              (low ? beta[LOW] : beta[HIGH]) * (low ? u_up.at[e] : u_down.at[3 - e]) +
              (low ? alpha[LOW] : alpha[HIGH]) * (low ? v_up.at[e] : v_down.at[3 - e]);
          T &slot = mixed[(j + e) % N_MIXED];
          slot = adjoint * K::at(slot).derivative;
        }
      }
    });
  }

  // The gradient in the log lengthscale of an input, through distances.
  T through_distances(const T *z, const T (&coefficient)[2]) const {
    const T high = z[Base::high_row(lane)], low = HAS_LOW ? z[lane] : T(0);
    T of_wide = 0, of_mixed = 0;
#pragma unroll
    for (int j = 0; j < 32; j += 4) {
      const Four<T> up = load_four(z + j), down = load_four(z + (M - 4 - j));
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const T gap = high - up.at[e];
        of_wide += wide[j + e] * gap * gap;
        if (!HAS_LOW) continue;
        const bool is_low = this->is_low(j + e);
        const T other = (is_low ? low : high) - (is_low ? up.at[e] : down.at[3 - e]);
        of_mixed += mixed[(j + e) % N_MIXED] * other * other;
      }
    }
    return reduce_lanes(coefficient[HIGH] * high * high + coefficient[LOW] * low * low -
                            T(4) * (of_wide + of_mixed), Sum{});
  }
};

}  // namespace lsgp

// Loss and gradient of small systems, a warp for each target row.
extern "C" __global__ void __launch_bounds__(LSGP_THREADS, LSGP_BLOCKS)
    score_warp(LSGP_PROBLEM_ARGUMENTS(T), const int *targets, const int *neighbors,
               long long n_queries, int m, int objective, double *loss, double *gradient,
               int *status) {
  typedef lsgp::WarpScore<T, LSGP_M> System;
  LSGP_WARP_SYSTEM(System);
  const long long row = targets[q];
  const T *query = X + row * d;
  double *of_query = gradient + q * (d + lsgp::N_SHARED_PARAMETERS);
  system.measure(query, i_high, i_low);
  system.weigh(i_high, i_low);
  system.factor();
  const int code = system.status();
  system.back_substitute();
  const double value = system.evaluate(lsgp::Objective(objective), y[row], noise[row], of_query);
  system.differentiate(query, i_high, i_low, of_query);
  if (lane) return;
  loss[q] = value;
  status[q] = code;
}
