// SPDX-License-Identifier: BSD-3-Clause
// Predictions of small systems, a warp for each query.
#pragma once

extern "C" __global__ void __launch_bounds__(LSGP_THREADS, LSGP_BLOCKS)
    predict_warp(LSGP_PROBLEM_ARGUMENTS(T), const T *queries, const int *neighbors,
                 long long n_queries, int m, T *mean, T *variance, T *scale, T *dof, int *status) {
  typedef lsgp::WarpSystem<T, LSGP_M> System;
  LSGP_WARP_SYSTEM(System);
  system.measure(queries + q * d, i_high, i_low);
  system.weigh(i_high, i_low);
  system.factor();
  if (lane) return;
  mean[q] = system.yk;
  variance[q] = system.latent_variance();
  scale[q] = T(lsgp::posterior_scale(problem, system.yy, system.n_effective).value);
  dof[q] = T(scale_dof + system.n_effective);
  status[q] = system.status();
}
