// SPDX-License-Identifier: BSD-3-Clause
// Predictions of small systems, a warp for each query.
#pragma once

extern "C" __global__ void __launch_bounds__(LSGP_THREADS, LSGP_BLOCKS)
    predict_warp(LSGP_PROBLEM_ARGUMENTS(T), const T *queries, const int *neighbors,
                 long long n_queries, int m, T *mean, T *variance, T *scale, T *dof, int *status) {
  __shared__ __align__(16) lsgp::WarpMemory<T, LSGP_M> memory[LSGP_THREADS / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long q = (long long)blockIdx.x * (LSGP_THREADS / 32) + warp;
  if (q >= n_queries) return;
  const lsgp::Problem<T> problem = LSGP_PROBLEM(T);
  const int *own = neighbors + q * m;
  const int high = lsgp::WarpSystem<T, LSGP_M>::high_row(lane);
  const int i_high = high < m ? own[high] : -1, i_low = lane < m ? own[lane] : -1;
  lsgp::WarpSystem<T, LSGP_M> system(problem, memory[warp], lane);
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
