// SPDX-License-Identifier: BSD-3-Clause
// Training data and hyperparameters on a device; the same as in _core/local_problem.h.
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

}  // namespace lsgp
