// SPDX-License-Identifier: BSD-3-Clause
// Loss of predicting each target row from its neighbors, and its gradient [E8].
#pragma once

extern "C" __global__ void score(
    LSGP_PROBLEM_ARGUMENTS(T), const int *targets, const int *neighbors, long long n_queries,
    int m, int objective, T *scratch, long long n_scratch, long long n_vectors, double *loss,
    double *gradient, int *status) {
  LSGP_WORKSPACE(1 + t, true);
  for (long long q = blockIdx.x; q < n_queries; q += gridDim.x) {
    const long long row = targets[q];
    lsgp::LocalScore<T> system(problem, space);
    system.gather(X + row * d, neighbors + q * m, m);
    const int code = system.solve();
    system.back_substitute(1 + t);
    const double value =
        system.evaluate(lsgp::Objective(objective), y + row * t, noise[row]);
    system.differentiate(gradient + q * (d + lsgp::N_SHARED_PARAMETERS));
    if (lsgp::rank() == 0) {
      loss[q] = value;
      status[q] = code;
    }
    __syncthreads();
  }
}
