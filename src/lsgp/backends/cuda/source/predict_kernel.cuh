// SPDX-License-Identifier: BSD-3-Clause
// The prediction of each query [E4] to [E6], by a block of threads.
#pragma once

extern "C" __global__ void predict(
    LSGP_PROBLEM_ARGUMENTS(T), const T *queries, const int *neighbors, long long n_queries,
    int m, T *scratch, long long n_scratch, long long n_vectors, T *mean, T *variance, T *scale,
    T *dof, int *status) {
  LSGP_WORKSPACE(0, false);
  for (long long q = blockIdx.x; q < n_queries; q += gridDim.x) {
    lsgp::LocalSystem<T> system(problem, space);
    system.gather(queries + q * d, neighbors + q * m, m);
    const int code = system.solve();
    for (int j = lsgp::rank(); j < t; j += lsgp::n_threads()) {
      mean[q * t + j] = system.mean(j);
      scale[q * t + j] =
          T(lsgp::posterior_scale(problem, system.misfit(j), system.n_effective).value);
    }
    if (lsgp::rank() == 0) {
      variance[q] = system.latent_variance();
      dof[q] = T(scale_dof + system.n_effective);
      status[q] = code;
    }
    __syncthreads();
  }
}
