// SPDX-License-Identifier: BSD-3-Clause
// The problem of a kernel that solves local systems: its dtype T, and the arguments that it is, in
// the order of solve.py.
#pragma once

#define LSGP_PROBLEM_ARGUMENTS(T)                                                                \
  const T *X, const T *y, const T *noise, const T *inverse_lengthscale, int d, int t, int kernel, \
      int localizer, double signal_variance, double noise_variance, double constant_variance,     \
      double slope_variance, double localizer_decay, double scale_dof, double bandwidth,          \
      double mean_lengthscale, int normalize, int is_trend_apart
#define LSGP_PROBLEM(T)                                                                           \
  lsgp::Problem<T>(X, y, noise, inverse_lengthscale, d, t, kernel, localizer, signal_variance,    \
                   noise_variance, constant_variance, slope_variance, localizer_decay, scale_dof, \
                   bandwidth, mean_lengthscale, normalize, is_trend_apart)

typedef LSGP_DTYPE T;
