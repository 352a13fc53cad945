// SPDX-License-Identifier: BSD-3-Clause
// What the mean of each query multiplies the targets of its neighbors by [E3].
#pragma once

extern "C" __global__ void coefficients(
    LSGP_PROBLEM_ARGUMENTS(T), const T *queries, const int *neighbors, long long n_queries,
    int m, T *scratch, long long n_scratch, long long n_vectors, T *beta, T *weight, T *variance,
    int *status) {
  LSGP_WORKSPACE(1, false);
  for (long long q = blockIdx.x; q < n_queries; q += gridDim.x) {
    lsgp::LocalSystem<T> system(problem, space);
    system.gather(queries + q * d, neighbors + q * m, m);
    const int code = system.solve();
    system.back_substitute(1);
    for (int i = lsgp::rank(); i < m; i += lsgp::n_threads()) {
      // Rows behind the last one of positive weight are not in the system.
      const bool in = i < system.rows && space.present[i] > 0;
      beta[q * m + i] = in ? space.solution[i] : T(0);
      weight[q * m + i] = in ? space.weight[i] : T(0);
    }
    if (lsgp::rank() == 0) {
      variance[q] = system.latent_variance();
      status[q] = code;
    }
    __syncthreads();
  }
}
