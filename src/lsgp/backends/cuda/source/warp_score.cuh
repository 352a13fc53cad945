// SPDX-License-Identifier: BSD-3-Clause
// Leave-one-out loss and its gradient [E8] of small systems, a warp for each; see score.cuh.
//
// Each lane has all entries of its rows, above the diagonal too, where they are those below it once
// more: sums over pairs take half of what is on both sides, instead of asking for each entry which
// side it is on.
#pragma once

namespace lsgp {

template <class T, int M> struct WarpScore : WarpSystem<T, M, true> {
  typedef WarpSystem<T, M, true> Base;
  typedef WarpMemory<T, M> Memory;
  using Base::farthest, Base::first, Base::h2, Base::lane, Base::memory, Base::n_effective,
      Base::present, Base::problem, Base::r2, Base::rows, Base::second;
  static constexpr bool HAS_SECOND = Base::HAS_SECOND;
  static constexpr int N_SECOND = Base::N_SECOND, W = Base::PANEL_WIDTH;

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
    const int j = p * W, owner = j % 32, s = j < 32 ? 0 : 1;
    const T *row = this->share_rows(p);
    T x[W], z[W];  // beta and alpha of the rows of the panel
#pragma unroll
    for (int a = W - 1; a >= 0; a--) {
      x[a] = from_lane(beta[s], owner + a), z[a] = from_lane(alpha[s], owner + a);
#pragma unroll
      for (int b = a + 1; b < W; b++) {
        const T own = s == 0 ? first[(j + a) % 32] : second[(j + a) % N_SECOND];
        const T entry = from_lane(own, owner + b);
        x[a] -= entry * x[b], z[a] -= entry * z[b];
      }
      const T inverse = from_lane(this->inverse[s], owner + a);
      x[a] *= inverse, z[a] *= inverse;
    }
#pragma unroll
    for (int a = 0; a < W; a++) {
      if (lane == owner + a) beta[s] = x[a], alpha[s] = z[a];
      if (j >= 32 || lane < j) {
        const T entry = row[a * M + lane];
        beta[0] -= entry * x[a], alpha[0] -= entry * z[a];
      }
      if (HAS_SECOND && j > 32 && lane + 32 < j) {
        const T entry = row[a * M + lane + 32];
        beta[1] -= entry * x[a], alpha[1] -= entry * z[a];
      }
    }
  }

  // The loss, and the gradient in what follows the lengthscales, as far as it is known here.
  double evaluate(Objective objective, T observed, T target_noise, double *gradient) {
    double unit = 1;
    if (problem.normalize) unit = std::sqrt(h2 > 0 ? double(h2) : 1.0) * problem.mean_lengthscale;
    const ColumnLoss loss =
        column_loss(problem, objective, observed - this->yk, this->latent_variance(), target_noise,
                    unit, this->yy, n_effective);
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

  void differentiate(const T *query, int i0, int i1, double *gradient) {
    const int index[2] = {i0, HAS_SECOND ? i1 : -1}, d = problem.d;
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
      const Weight<T> w = this->weight_of(s);
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
    weigh_pairs(query, i0, i1);
    T by_slope = 0;
    for (int k0 = 0; k0 < d; k0 += Memory::CHUNK) {
      // What was placed last is still there.
      if (d > Memory::CHUNK) this->place_chunk(query, i0, i1, k0);
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
    return reduce_lanes(x[0] * z[lane] + (HAS_SECOND ? x[1] * z[lane + 32] : T(0)), Sum{});
  }

  // B_ij = adj(A)_ij rho'_ij in place of the factor, half of it where a pair comes twice.
  void weigh_pairs(const T *query, int i0, int i1) {
    T *u = memory.panel, *v = memory.panel + M;  // no panel is needed any more
    __syncwarp();
    u[lane] = of_beta[0], v[lane] = of_alpha[0];
    if (HAS_SECOND) u[lane + 32] = of_beta[1], v[lane + 32] = of_alpha[1];
    this->measure(query, i0, i1);  // waits for the other lanes
    const T b0 = T(0.5) * beta[0], a0 = T(0.5) * alpha[0];
    with_kernel(problem.kernel, [&](auto kernel) {
      typedef decltype(kernel) K;
#pragma unroll
      for (int j = 0; j < M; j += 4) {
        const T b1 = j < 32 ? beta[1] : T(0.5) * beta[1], a1 = j < 32 ? alpha[1] : T(0.5) * alpha[1];
        const Four<T> uj = load_four(u + j), vj = load_four(v + j);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (j < 32) first[j + e] = (b0 * uj.at[e] + a0 * vj.at[e]) * K::at(first[j + e]).derivative;
          if (HAS_SECOND)
            second[j + e] = (b1 * uj.at[e] + a1 * vj.at[e]) * K::at(second[j + e]).derivative;
        }
      }
    });
  }

  // The gradient in the log lengthscale of an input, through distances.
  T through_distances(const T *z, const T (&coefficient)[2]) const {
    const T z0 = z[lane], z1 = HAS_SECOND ? z[lane + 32] : T(0);
    T of_first = 0, of_second = 0;
#pragma unroll
    for (int j = 0; j < M; j += 4) {
      const Four<T> other = load_four(z + j);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const T gap0 = z0 - other.at[e], gap1 = z1 - other.at[e];
        if (j < 32) of_first += first[j + e] * gap0 * gap0;
        if (HAS_SECOND) of_second += second[j + e] * gap1 * gap1;
      }
    }
    return reduce_lanes(coefficient[0] * z0 * z0 + coefficient[1] * z1 * z1 -
                            T(4) * (of_first + of_second), Sum{});
  }
};

}  // namespace lsgp
