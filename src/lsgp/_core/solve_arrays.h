// SPDX-License-Identifier: BSD-3-Clause
// What the bindings of local solves take from NumPy and write to it: arrays, a model, the queries of
// a group of lanes, and predictions. Sizes that contradict each other are refused here.
#pragma once

#include <algorithm>
#include <new>

#include "arrays.h"
#include "local_solve.h"

namespace lsgp {

// LocalModel, in the order that backends/cpu.py passes it; see Problem.
typedef std::tuple<int, int, In<double, 1>, double, double, double, double, double, double,
                   double, double, bool, bool> ModelTuple;
template <> struct MayConvert<ModelTuple> : std::true_type {};

template <class T>
Problem<T> make_problem(const In<T, 2> &X, const In<T, 2> &y, const In<T, 1> &noise,
                        const ModelTuple &model) {
  const auto &[kernel, localizer, lengthscale, signal_variance, noise_variance,
               constant_variance, slope_variance, localizer_decay, scale_dof, bandwidth,
               mean_lengthscale, normalize, is_trend_apart] = model;
  require(y.shape(0) == X.shape(0), "y must have as many rows as X");
  require(noise.shape(0) == X.shape(0), "noise must have as many rows as X");
  require(lengthscale.shape(0) == X.shape(1), "lengthscale must have one value per column of X");
  require(kernel >= 0 && kernel < N_KERNELS, "no kernel has this code");
  require(localizer >= 0 && localizer < N_LOCALIZERS, "no localizer has this code");
  Problem<T> p;
  p.X = X.data();
  p.y = y.data();
  p.noise = noise.data();
  p.d = int(X.shape(1));
  p.t = int(y.shape(1));
  p.kernel = Kernel(kernel);
  p.localizer = Localizer(localizer);
  p.lengthscale = lengthscale.data();
  p.signal_variance = signal_variance;
  p.noise_variance = noise_variance;
  p.localizer_decay = localizer_decay;
  p.scale_dof = scale_dof;
  p.bandwidth = bandwidth;
  p.mean_lengthscale = mean_lengthscale;
  p.normalize = normalize;
  p.constant_variance = is_trend_apart ? 0 : constant_variance;
  p.slope_variance = is_trend_apart ? 0 : slope_variance;
  p.has_constant_apart = is_trend_apart && constant_variance > 0;
  p.has_slope_apart = is_trend_apart && slope_variance > 0;
  p.constant_precision = 1 / constant_variance;
  p.slope_precision = 1 / slope_variance;
  return p;
}

inline void check_neighbors(const In<int32_t, 2> &neighbors, size_t n_rows) {
  const int32_t *index = neighbors.data();
  const size_t count = neighbors.size();
  int32_t largest = -1;
  for (size_t e = 0; e < count; e++) largest = index[e] > largest ? index[e] : largest;
  require(largest < 0 || size_t(largest) < n_rows, "neighbors names a row that X does not have");
}

// Vectors need the alignment of the widest register.
template <class V> struct Memory {
  V *data;
  explicit Memory(size_t n)
      : data(static_cast<V *>(::operator new(n * sizeof(V), std::align_val_t(64)))) {}
  ~Memory() { ::operator delete(data, std::align_val_t(64)); }
  Memory(const Memory &) = delete;
};

// The queries of a group of lanes; lanes without a query repeat the last one.
template <class T> struct Group {
  static constexpr int W = Simd<T>::W;
  size_t begin;
  int used;
  const T *query[W];
  const int32_t *rows[W];

  Group(const In<T, 2> &queries, const In<int32_t, 2> &neighbors, size_t begin)
      : begin(begin), used(int(std::min<size_t>(W, queries.shape(0) - begin))) {
    for (int l = 0; l < W; l++) {
      query[l] = queries.data() + number(l) * queries.shape(1);
      rows[l] = neighbors.data() + number(l) * neighbors.shape(1);
    }
  }

  size_t number(int l) const { return begin + std::min(l, used - 1); }

  // Values (k,) of all lanes, where element j of query e is at out[e * stride + j].
  void write(const typename Simd<T>::Vec *values, size_t k, T *out, size_t stride) const {
    for (int l = 0; l < used; l++)
      for (size_t j = 0; j < k; j++) out[(begin + l) * stride + j] = values[j][l];
  }
};

// Where predictions of all queries go.
template <class T> struct PredictionArrays {
  Out<T, 2> mean;            // (q, t)
  Out<T, 1> variance;        // (q,)
  Out<T, 2> scale;           // (q, t)
  Out<T, 1> dof;             // (q,)
  Out<int32_t, 1> status;    // (q,)

  void check(const Problem<T> &problem, const In<T, 2> &queries,
             const In<int32_t, 2> &neighbors) const {
    const size_t q = queries.shape(0), t = problem.t;
    require(queries.shape(1) == size_t(problem.d), "queries must have as many columns as X");
    require(neighbors.shape(0) == q, "neighbors must have one row per query");
    require(has_shape(mean, q, t) && has_shape(scale, q, t) && has_shape(variance, q) &&
                has_shape(dof, q) && has_shape(status, q),
            "the outputs must have one row per query");
  }

  // What a group's solver says after `solve`.
  void write(const LocalSolver<T> &solver, const Group<T> &group, const int *code) {
    const size_t t = solver.problem.t;
    const auto tau2 = solver.latent_variance();
    for (size_t j = 0; j < t; j++) {
      const auto mu = solver.mean(int(j)), misfit = solver.misfit(int(j));
      for (int l = 0; l < group.used; l++) {
        const size_t e = group.begin + l;
        const Scale posterior = posterior_scale(solver.problem, misfit[l], solver.n_effective[l]);
        mean.data()[e * t + j] = mu[l];
        scale.data()[e * t + j] = T(posterior.value);
      }
    }
    for (int l = 0; l < group.used; l++) {
      variance.data()[group.begin + l] = tau2[l];
      dof.data()[group.begin + l] = T(solver.problem.scale_dof + solver.n_effective[l]);
      status.data()[group.begin + l] = code[l];
    }
  }
};

}  // namespace lsgp
