// SPDX-License-Identifier: BSD-3-Clause
// The predictive distribution of one query and its loss, in plain numbers, for compiled code: the
// native core's and that of a GPU, where this file is pasted behind losses.h, without its includes.
// P is a problem: training data and hyperparameters.
#pragma once

#include "losses.h"

// Arithmetic of one lane in plain numbers. Never inlined on a host: in a loop over lanes the compiler
// would be free to contract a product and a sum in the lanes that it vectorizes, and not in those
// left over, and a result would depend on the lane, and so on the size of the block.
#ifdef LSGP_ON_DEVICE
#define LSGP_SAME_FOR_ALL_LANES inline
#else
#define LSGP_SAME_FOR_ALL_LANES __attribute__((noinline))
#endif

namespace lsgp {

struct Scale {
  double value, dof;
};

// [E6] The local scale, from the misfit yᵀα and the sum of min(w, 1).
template <class P>
LSGP_SAME_FOR_ALL_LANES Scale posterior_scale(const P &problem, double misfit,
                                              double n_effective) {
  const double dof = problem.scale_dof + n_effective;
  if (!std::isfinite(problem.scale_dof)) return {problem.signal_variance, dof};
  return {(problem.scale_dof * problem.signal_variance + misfit) / dof, dof};
}

// Of one target column of one lane, and its derivatives; parameters in logarithms.
struct ColumnLoss {
  double value, by_mean, by_variance, by_misfit, by_dof;
  double by_signal_variance, by_noise_variance, by_scale_dof;
};

template <class P>
LSGP_SAME_FOR_ALL_LANES ColumnLoss column_loss(const P &problem, Objective objective,
                                               double error, double tau2, double target_noise,
                                               double noise_unit, double misfit,
                                               double n_effective) {
  const double s2 = problem.signal_variance, dof0 = problem.scale_dof, share = 1.0 / problem.t;
  const Scale scale = posterior_scale(problem, misfit, n_effective);  // [E6]
  const double noise = problem.noise_variance * target_noise * noise_unit;
  const double relative = tau2 + noise;  // [E7]
  const Loss L = evaluate_loss(objective, error, scale.value * relative, scale.dof);
  const double by_scale = share * L.by_variance * relative;
  const double by_variance = share * L.by_variance * scale.value;
  ColumnLoss column = {share * L.value, -share * L.by_error, by_variance, 0, 0,
                       by_scale * s2, by_variance * noise, 0};
  if (std::isfinite(dof0)) {
    const double through_dof = share * L.by_dof - by_scale * scale.value / scale.dof;
    column.by_misfit = by_scale / scale.dof;
    column.by_dof = through_dof;
    column.by_signal_variance = by_scale * dof0 / scale.dof * s2;
    column.by_scale_dof = (through_dof + by_scale * s2 / scale.dof) * dof0;
  }
  return column;
}

}  // namespace lsgp
