// SPDX-License-Identifier: BSD-3-Clause
// Training data and hyperparameters on a device, and what a predictive distribution is made of; the
// same as in _core/local_solve.h and _core/local_score.h.
#pragma once

namespace lsgp {

constexpr int STATUS_OK = 0, STATUS_JITTERED = 1, STATUS_NOT_POSITIVE_DEFINITE = 2,
              STATUS_NOT_FINITE = 3, STATUS_IMPRECISE = 4, STATUS_UNDETERMINED = 5;
constexpr double FIRST_JITTER = 1e-12, LAST_JITTER = 1e-4;
constexpr double LARGEST_TREND_IN_MATRIX = 100;
constexpr int N_SHARED_PARAMETERS = 6;

// See _core/local_solve.h for what set them.
template <class T> struct Limits {
  static constexpr bool IS_SINGLE = sizeof(T) == 4;
  static constexpr T SMALLEST_WEIGHT = IS_SINGLE ? T(1e-15) : T(1e-100);
  static constexpr T SMALLEST_VARIANCE = 16 * Digits<T>::epsilon;
  static constexpr T SMALLEST_PIVOT = 16 * Digits<T>::epsilon;
  static constexpr T KNOWN_PIVOT = T(1e-10);
  static constexpr T PRECISE_PIVOT = T(2e-4), PRECISE_VARIANCE = T(1e-4);
};

template <class T> struct Problem {
  const T *X;                    // (n, d)
  const T *y;                    // (n, t)
  const T *noise;                // (n,)
  const T *inverse_lengthscale;  // (d,)
  int d, t;
  Kernel kernel;
  Localizer localizer;
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
  // h0 of [E10]: column p of H at the query.
  T basis_at_query(int p) const { return input_of(p) < 0 ? T(1) : T(0); }
  // Only double precision without a trend in the matrix has nowhere else to go than to jitter.
  bool is_last_resort() const { return sizeof(T) == 8 && !has_trend_in_matrix(); }
};

// The arguments of a kernel that are a Problem, in the order of solve.py.
#define LSGP_PROBLEM_ARGUMENTS(T)                                                                \
  const T *X, const T *y, const T *noise, const T *inverse_lengthscale, int d, int t, int kernel, \
      int localizer, double signal_variance, double noise_variance, double constant_variance,     \
      double slope_variance, double localizer_decay, double scale_dof, double bandwidth,          \
      double mean_lengthscale, int normalize, int is_trend_apart
#define LSGP_PROBLEM(T)                                                                            \
  lsgp::Problem<T> {                                                                               \
    X, y, noise, inverse_lengthscale, d, t, lsgp::Kernel(kernel), lsgp::Localizer(localizer),      \
        signal_variance, noise_variance, localizer_decay, scale_dof, bandwidth, mean_lengthscale,  \
        normalize != 0, is_trend_apart ? 0 : constant_variance,                                    \
        is_trend_apart ? 0 : slope_variance, 1 / constant_variance, 1 / slope_variance,            \
        is_trend_apart && constant_variance > 0, is_trend_apart && slope_variance > 0              \
  }

struct Scale {
  double value, dof;
};

// [E6] The local scale, from the misfit yᵀα and the sum of min(w, 1).
template <class T>
inline Scale posterior_scale(const Problem<T> &problem, double misfit, double n_effective) {
  const double dof = problem.scale_dof + n_effective;
  if (!std::isfinite(problem.scale_dof)) return {problem.signal_variance, dof};
  return {(problem.scale_dof * problem.signal_variance + misfit) / dof, dof};
}

// Of one target column, and its derivatives; parameters in logarithms.
struct ColumnLoss {
  double value, by_mean, by_variance, by_misfit, by_dof;
  double by_signal_variance, by_noise_variance, by_scale_dof;
};

template <class T>
inline ColumnLoss column_loss(const Problem<T> &problem, Objective objective, double error,
                              double tau2, double target_noise, double noise_unit, double misfit,
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
