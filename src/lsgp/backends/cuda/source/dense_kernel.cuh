// SPDX-License-Identifier: BSD-3-Clause
// Correlations of many points with many others, for exact GPs: one pair a thread. Distances are sums
// of squared differences, never of products: where rows are close, those have no digits left.
#pragma once

// rho (p, r), and its derivative in the squared distance, each with a row every `stride` numbers;
// either may be null.
extern "C" __global__ void correlate(const double *left, const double *right, long long n_left,
                                     long long n_right, int d, int kernel, double *rho,
                                     double *by_r2, long long stride) {
  const long long n = n_left * n_right, step = (long long)gridDim.x * blockDim.x;
  for (long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x; pair < n; pair += step) {
    const long long i = pair / n_right, j = pair % n_right;
    double r2 = 0;
    for (int k = 0; k < d; k++) {
      const double gap = left[i * d + k] - right[j * d + k];
      r2 += gap * gap;
    }
    lsgp::with_kernel(lsgp::Kernel(kernel), [&](auto formula) {
      const auto found = formula.at(r2);
      if (rho) rho[i * stride + j] = found.value;
      if (by_r2) by_r2[i * stride + j] = found.derivative;
    });
  }
}
