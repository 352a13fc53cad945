// SPDX-License-Identifier: BSD-3-Clause
// The predictive distribution of one query, its loss and derivatives, for compiled code: the native
// core's and that of a GPU, where this file is pasted without its includes. The formulas are those
// of losses.py. One call per query, after O(m³) work: plain numbers, no vectors.
#pragma once

#include <cmath>

// Arithmetic of one lane in plain numbers. Never inlined on a host: in a loop over lanes the compiler
// would be free to contract a product and a sum in the lanes that it vectorizes, and not in those
// left over, and a result would depend on the lane, and so on the size of the block.
#ifdef LSGP_ON_DEVICE
#define LSGP_SAME_FOR_ALL_LANES inline
#else
#define LSGP_SAME_FOR_ALL_LANES __attribute__((noinline))
#endif

namespace lsgp {

constexpr double PI = 3.14159265358979323846;

enum class Objective : int { crps, log_density, squared_error };

struct Loss {
  double value;
  double by_error;     // error = observation - mean
  double by_variance;  // squared scale of the predictive
  double by_dof;
};

inline double digamma(double x) {
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  const double y = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x -
         y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y / 132))));
}

inline Loss squared_error(double error) { return {error * error, 2 * error, 0, 0}; }

inline Loss gaussian_log_density(double error, double variance) {
  const double z2 = error * error / variance;
  return {0.5 * (std::log(2 * PI * variance) + z2), error / variance,
          0.5 * (1 - z2) / variance, 0};
}

inline Loss student_log_density(double error, double variance, double dof) {
  const double z2 = error * error / (dof * variance);
  const double excess = (dof + 1) * z2 / (1 + z2);
  return {std::lgamma(0.5 * dof) - std::lgamma(0.5 * (dof + 1)) +
              0.5 * std::log(PI * dof * variance) + 0.5 * (dof + 1) * std::log1p(z2),
          (dof + 1) * error / (dof * variance * (1 + z2)), 0.5 * (1 - excess) / variance,
          0.5 * (digamma(0.5 * dof) - digamma(0.5 * (dof + 1)) + std::log1p(z2)) +
              0.5 * (1 - excess) / dof};
}

inline Loss gaussian_crps(double error, double variance) {
  const double scale = std::sqrt(variance), z = error / scale;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * PI);
  const double sign_probability = std::erf(z / std::sqrt(2.0));
  const double by_scale = 2 * density - 1 / std::sqrt(PI);
  return {scale * (z * sign_probability + by_scale), sign_probability,
          0.5 * by_scale / scale, 0};
}

// That of the Gaussian of equal variance, which keeps the derivative in dof elementary.
inline Loss student_crps(double error, double variance, double dof) {
  const double excess = dof - 2 > 0.5 ? dof - 2 : 0.5;
  const double inflation = dof / excess;
  Loss loss = gaussian_crps(error, variance * inflation);
  const double by_inflation = loss.by_variance * variance;
  loss.by_variance *= inflation;
  loss.by_dof = by_inflation * (dof - 2 > 0.5 ? -2 / (excess * excess) : 1 / excess);
  return loss;
}

inline Loss evaluate_loss(Objective objective, double error, double variance, double dof) {
  const bool gaussian = std::isinf(dof);
  switch (objective) {
    case Objective::crps:
      return gaussian ? gaussian_crps(error, variance) : student_crps(error, variance, dof);
    case Objective::log_density:
      return gaussian ? gaussian_log_density(error, variance)
                      : student_log_density(error, variance, dof);
    case Objective::squared_error: break;
  }
  return squared_error(error);
}

// P is a problem: training data and hyperparameters.

struct Scale {
  double value, dof;
};

// [E6] The local scale, from the misfit yᵀα and the sum of min(w, 1).
template <class P>
LSGP_SAME_FOR_ALL_LANES Scale posterior_scale(const P &problem, double misfit,
                                              double n_effective) {
  const double dof = problem.scale_dof + n_effective;
  if (!std::isfinite(problem.scale_dof)) return {problem.signal_variance, dof};
  return {(problem.scale_dof * problem.signal_variance + misfit) / dof, dof};
}

// Of one target column of one lane, and its derivatives; parameters in logarithms.
struct ColumnLoss {
  double value, by_mean, by_variance, by_misfit, by_dof;
  double by_signal_variance, by_noise_variance, by_scale_dof;
};

template <class P>
LSGP_SAME_FOR_ALL_LANES ColumnLoss column_loss(const P &problem, Objective objective,
                                               double error, double tau2, double target_noise,
                                               double noise_unit, double misfit,
                                               double n_effective) {
  const double s2 = problem.signal_variance, dof0 = problem.scale_dof, share = 1.0 / problem.t;
  const Scale scale = posterior_scale(problem, misfit, n_effective);  // [E6]
  const double noise = problem.noise_variance * target_noise * noise_unit;
  const double relative = tau2 + noise;  // [E7]
  const Loss L = evaluate_loss(objective, error, scale.value * relative, scale.dof);
  const double by_scale = share * L.by_variance * relative;
  const double by_variance = share * L.by_variance * scale.value;
  ColumnLoss column = {share * L.value, -share * L.by_error, by_variance, 0, 0,
                       by_scale * s2, by_variance * noise, 0};
  if (std::isfinite(dof0)) {
    const double through_dof = share * L.by_dof - by_scale * scale.value / scale.dof;
    column.by_misfit = by_scale / scale.dof;
    column.by_dof = through_dof;
    column.by_signal_variance = by_scale * dof0 / scale.dof * s2;
    column.by_scale_dof = (through_dof + by_scale * s2 / scale.dof) * dof0;
  }
  return column;
}

}  // namespace lsgp
