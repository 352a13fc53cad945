// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of local solves in the query, at a fixed neighborhood; as in
// backends/query_gradient.py. With z = (x - query) / l, distances, weights, the adaptive bandwidth
// and the slope of the trend all move, and every derivative in input k is
//   -2 / l_k (sum over points of c_i z_ik + e z_fk) - s_k / l_k,
// f the neighbor that sets the bandwidth; what differs are c, e and the slopes' s.
#pragma once

#include "local_solve.h"

namespace lsgp {

template <class T> struct LocalGradient : LocalSolver<T> {
  typedef LocalSolver<T> Base;
  typedef typename Base::V V;
  typedef typename Base::I I;
  using Base::problem, Base::space, Base::rows, Base::h2, Base::farthest, Base::n_effective;
  using Base::beta, Base::alpha, Base::total, Base::moment;
  static constexpr int W = Base::W;

  V inverse_h2;     // 0 where all neighbors are on top of the query
  V variance, dof;  // [E5], [E6]

  LocalGradient(const Problem<T> &p, int m) : Base(p, m, Kept::solution) {}

  V *by_r2() const { return space.row_sum; }          // derivative of the kernel at the query
  V *coefficient() const { return space.by_decay; }   // c, in place of what is not needed here

  // After `solve`: what all derivatives share.
  void prepare() {
    this->back_substitute(1 + problem.t);
    const V zero = {}, one = splat(T(1));
    inverse_h2 = h2 > zero ? one / (h2 > zero ? h2 : one) : zero;
    variance = this->latent_variance();
    dof = n_effective + T(problem.scale_dof);
    with_kernel(problem.kernel, [&](auto kernel) {
      for (int i = 0; i < rows; i++)
        by_r2()[i] = decltype(kernel)::at(space.r2[i]).derivative;
    });
  }

  void differentiate_mean(int j, V *out) {  // [E4]
    for (int i = 0; i < rows; i++) coefficient()[i] = alpha(j)[i] * by_r2()[i];
    const V e = subtract_noise(alpha(j), beta());
    const V sum_alpha = total(alpha(j)), sum_beta = total(beta());
    for (int k = 0; k < problem.d; k++)
      out[k] = gathered(k, e, -(slope_of_target(j, k) * sum_beta + sum_alpha * slope_of_query(k)));
  }

  void differentiate_variance(V *out) {  // [E5]
    // Less of A is more variance: the signs of the mean's, turned around.
    for (int i = 0; i < rows; i++) coefficient()[i] = T(2) * beta()[i] * by_r2()[i];
    const V e = subtract_noise(beta(), beta());
    const V sum = total(beta());
    const V floor = splat(Limits<T>::SMALLEST_VARIANCE * T(1 + problem.constant_variance));
    for (int k = 0; k < problem.d; k++) {
      const V value = gathered(k, e, T(-2) * slope_of_query(k) * sum);
      out[k] = variance > floor ? -value : V{};
    }
  }

  void differentiate_scale(int j, V *out) {  // [E6]
    differentiate_dof(out);
    if (!std::isfinite(problem.scale_dof)) return;
    V scale;
    const V misfit = this->misfit(j);
    for (int l = 0; l < W; l++)
      scale[l] = T(posterior_scale(problem, misfit[l], n_effective[l]).value);
    for (int i = 0; i < rows; i++) coefficient()[i] = V{};
    const V e = subtract_noise(alpha(j), alpha(j));
    const V sum = total(alpha(j));
    for (int k = 0; k < problem.d; k++) {
      const V by_misfit = gathered(k, e, T(-2) * slope_of_target(j, k) * sum);
      out[k] = (by_misfit - scale * out[k]) / dof;
    }
  }

  void differentiate_dof(V *out) {  // [E6]
    const V zero = {}, one = splat(T(1));
    V e = {};
    for (int i = 0; i < rows; i++) {
      const I counts = (space.present[i] > zero) & (space.weight[i] < one);
      e -= through_bandwidth(i, counts ? one : zero);
      coefficient()[i] = counts ? space.by_s[i] * inverse_h2 : zero;
    }
    for (int k = 0; k < problem.d; k++)
      out[k] = std::isfinite(problem.scale_dof) ? gathered(k, e, zero) : zero;
  }

  // Of the logarithm of what the noise of an observation is multiplied by [E7].
  void differentiate_noise_unit(V *out) {
    for (int i = 0; i < rows; i++) coefficient()[i] = V{};
    const V e = problem.normalize ? T(0.5) * inverse_h2 : V{};
    for (int k = 0; k < problem.d; k++) out[k] = gathered(k, e, V{});
  }

 private:
  // Takes leftᵀ dA right, as far as it is the noise over the weights [E2], from c; returns e.
  V subtract_noise(const V *left, const V *right) {
    const V zero = {}, one = splat(T(1));
    V e = {};
    for (int i = 0; i < rows; i++) {
      const I in = space.present[i] > zero;
      const V weight = in ? space.weight[i] : one;
      // The solutions vanish with the weight, whose square may underflow.
      const V by_weight = T(-problem.noise_variance) * space.noise[i] * (left[i] / weight) *
          (right[i] / weight);
      e += through_bandwidth(i, in ? by_weight : zero);
      coefficient()[i] -= in ? by_weight * space.by_s[i] * inverse_h2 : zero;
    }
    return e;
  }

  // What a derivative in the weight of point i takes with it through the adaptive bandwidth.
  V through_bandwidth(int i, V by_weight) const {
    V by_h2 = space.by_s[i] * space.r2[i] * inverse_h2;
    if (problem.normalize) by_h2 += T(0.5) * space.weight[i];
    return by_weight * by_h2 * inverse_h2;
  }

  V gathered(int k, V e, V slope) const {
    const V sum =
        moment(coefficient(), k) + (problem.bandwidth > 0 ? V{} : e * this->farthest_z(k));
    return (T(-2) * sum - slope) * problem.inverse_lengthscale[k];
  }

  // The slope that the targets show at the query, b zᵀα, and b zᵀβ.
  V slope_of_target(int j, int k) const {
    if (problem.has_slope_apart) return this->theta(j)[problem.has_constant_apart + k];
    return T(problem.slope_variance) * moment(alpha(j), k);
  }
  V slope_of_query(int k) const {
    if (problem.has_slope_apart) return -space.coefficient[problem.has_constant_apart + k];
    return T(problem.slope_variance) * moment(beta(), k);
  }
};

}  // namespace lsgp
