// SPDX-License-Identifier: BSD-3-Clause
// Training data and hyperparameters of local systems, for compiled code: the native core's and that
// of a GPU, where this file is pasted without its includes. formulas.h comes before it.
#pragma once

#include <cmath>

namespace lsgp {

constexpr int STATUS_OK = 0, STATUS_JITTERED = 1, STATUS_NOT_POSITIVE_DEFINITE = 2,
              STATUS_NOT_FINITE = 3, STATUS_IMPRECISE = 4, STATUS_UNDETERMINED = 5;
constexpr double FIRST_JITTER = 1e-12, LAST_JITTER = 1e-4;
// A trend of more variance, relative to the correlations', is kept apart from the matrix.
constexpr double LARGEST_TREND_IN_MATRIX = 100;
constexpr int N_SHARED_PARAMETERS = 6;

template <class T> struct Limits {
  static constexpr bool IS_SINGLE = sizeof(T) == 4;
  static constexpr T EPSILON = IS_SINGLE ? T(0x1p-23) : T(0x1p-52);
  // Below this a weight is as good as zero, and its square may underflow: the point is out.
  static constexpr T SMALLEST_WEIGHT = IS_SINGLE ? T(1e-15) : T(1e-100);
  // Rounding may push the latent variance below zero: this, relative to the prior's, is its floor.
  static constexpr T SMALLEST_VARIANCE = 16 * EPSILON;
  // A pivot below this, relative to the mean diagonal of the covariance, is but rounding.
  static constexpr T SMALLEST_PIVOT = 16 * EPSILON;
  // A column of the trend's basis with a pivot below this, relative to its diagonal, is implied by
  // the others; see method/trend.py.
  static constexpr T KNOWN_PIVOT = T(1e-10);
  // In single precision, pivots and latent variances below these, relative to their prior, have
  // lost too many digits, and the system is to be solved in double precision. Over 3,840 problems
  // (tests/test_precision.py) those above are off by at most 1.4 % of a latent standard deviation;
  // with 5e-5 for both it would be 6 %.
  static constexpr T PRECISE_PIVOT = T(2e-4), PRECISE_VARIANCE = T(1e-4);
};

// See LocalProblem and LocalModel in method/contract.py. The trend is in the matrix, where its
// variances count, or apart from it, where its precisions do.
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

  Problem(const T *X, const T *y, const T *noise, const T *inverse_lengthscale, int d, int t,
          int kernel, int localizer, double signal_variance, double noise_variance,
          double constant_variance, double slope_variance, double localizer_decay,
          double scale_dof, double bandwidth, double mean_lengthscale, bool normalize,
          bool is_trend_apart)
      : X(X), y(y), noise(noise), inverse_lengthscale(inverse_lengthscale), d(d), t(t),
        kernel(Kernel(kernel)), localizer(Localizer(localizer)),
        signal_variance(signal_variance), noise_variance(noise_variance),
        localizer_decay(localizer_decay), scale_dof(scale_dof), bandwidth(bandwidth),
        mean_lengthscale(mean_lengthscale), normalize(normalize),
        constant_variance(is_trend_apart ? 0 : constant_variance),
        slope_variance(is_trend_apart ? 0 : slope_variance),
        constant_precision(1 / constant_variance), slope_precision(1 / slope_variance),
        has_constant_apart(is_trend_apart && constant_variance > 0),
        has_slope_apart(is_trend_apart && slope_variance > 0) {}

  bool has_trend_in_matrix() const { return constant_variance != 0 || slope_variance != 0; }
  // Columns of H, the basis (1, z) of the trend apart.
  int n_apart() const { return int(has_constant_apart) + (has_slope_apart ? d : 0); }
  // The input that column p of H is the slope in; -1 for the constant.
  int input_of(int p) const { return p - int(has_constant_apart); }
  T precision_of(int p) const { return T(input_of(p) < 0 ? constant_precision : slope_precision); }
  // Only double precision without a trend in the matrix has nowhere else to go than to jitter.
  bool is_last_resort() const { return sizeof(T) == 8 && !has_trend_in_matrix(); }

  // What the noise of an observation at the query is multiplied by [E7]: h where weights are k/h.
  double noise_unit(double h2) const {
    return normalize ? std::sqrt(h2 > 0 ? h2 : 1.0) * mean_lengthscale : 1;
  }
  // What all weights are multiplied by.
  template <class V> V weight_unit(V h2) const {
    const V zero = {}, one = zero + T(1);
    return normalize ? one / (sqrt(h2 > zero ? h2 : one) * T(mean_lengthscale)) : one;
  }
  // Of a neighbor at this squared distance.
  template <class V> Weight<V> weight_of(V r2, V h2, V unit) const {
    const V zero = {}, one = zero + T(1);
    const Weight<V> w = localize(localizer, h2 > zero ? r2 / h2 : zero, T(localizer_decay));
    // All neighbors on top of the query: the bandwidth is 0, and each counts as one.
    return {(h2 > zero ? w.value : one) * unit, w.by_s * unit, w.by_decay * unit};
  }
};

}  // namespace lsgp
