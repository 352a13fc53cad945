// SPDX-License-Identifier: BSD-3-Clause
// Loss and gradient of small systems, a warp for each target row.
#pragma once

extern "C" __global__ void __launch_bounds__(LSGP_THREADS, LSGP_BLOCKS)
    score_warp(LSGP_PROBLEM_ARGUMENTS(T), const int *targets, const int *neighbors,
               long long n_queries, int m, int objective, double *loss, double *gradient,
               int *status) {
  __shared__ __align__(16) lsgp::WarpMemory<T, LSGP_M> memory[LSGP_THREADS / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long q = (long long)blockIdx.x * (LSGP_THREADS / 32) + warp;
  if (q >= n_queries) return;
  const lsgp::Problem<T> problem = LSGP_PROBLEM(T);
  const int *own = neighbors + q * m;
  const int high = lsgp::WarpSystem<T, LSGP_M>::high_row(lane);
  const int i_high = high < m ? own[high] : -1, i_low = lane < m ? own[lane] : -1;
  const long long row = targets[q];
  const T *query = X + row * d;
  double *of_query = gradient + q * (d + lsgp::N_SHARED_PARAMETERS);
  lsgp::WarpScore<T, LSGP_M> system(problem, memory[warp], lane);
  system.measure(query, i_high, i_low);
  system.weigh(i_high, i_low);
  system.factor();
  const int code = system.status();
  system.back_substitute();
  const double value = system.evaluate(lsgp::Objective(objective), y[row], noise[row], of_query);
  system.differentiate(query, i_high, i_low, of_query);
  if (lane) return;
  loss[q] = value;
  status[q] = code;
}
