// SPDX-License-Identifier: BSD-3-Clause
// Losses of one prediction and their derivatives, the same formulas as losses.py. One call per
// query, after O(m³) work: plain numbers, no vectors.
#pragma once

#include <cmath>

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

}  // namespace lsgp
