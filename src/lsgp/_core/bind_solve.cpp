// SPDX-License-Identifier: BSD-3-Clause
// `predict`, `differentiate`, `coefficients` and `score` of the native core: a block of queries, in
// groups of W lanes. The GIL is released; Python threads run the blocks. Sizes that contradict each
// other are refused here.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "arrays.h"
#include "local_gradient.h"
#include "local_score.h"

namespace lsgp {

// LocalModel, in the order that backends/cpu.py passes it; see Problem.
typedef std::tuple<int, int, In<double, 1>, double, double, double, double, double, double,
                   double, double, bool, bool> ModelTuple;
template <> struct MayConvert<ModelTuple> : std::true_type {};

}  // namespace lsgp

namespace nb = nanobind;
using namespace lsgp;

namespace {

// inverse: (d,) lengthscales, written, which the problem refers to
template <class T>
Problem<T> make_problem(const In<T, 2> &X, const In<T, 2> &y, const In<T, 1> &noise,
                        const ModelTuple &model, std::vector<T> &inverse) {
  const int kernel = std::get<0>(model), localizer = std::get<1>(model);
  const In<double, 1> &lengthscale = std::get<2>(model);
  require(y.shape(0) == X.shape(0), "y must have as many rows as X");
  require(noise.shape(0) == X.shape(0), "noise must have as many rows as X");
  require(has_shape(lengthscale, X.shape(1)), "lengthscale must have one value per column of X");
  require(kernel >= 0 && kernel < N_KERNELS, "no kernel has this code");
  require(localizer >= 0 && localizer < N_LOCALIZERS, "no localizer has this code");
  for (size_t k = 0; k < X.shape(1); k++) inverse.push_back(T(1 / lengthscale.data()[k]));
  return std::apply(
      [&](int, int, const In<double, 1> &, auto... numbers) {
        return Problem<T>(X.data(), y.data(), noise.data(), inverse.data(), int(X.shape(1)),
                          int(y.shape(1)), kernel, localizer, numbers...);
      },
      model);
}

template <class T>
void check_queries(const In<T, 2> &X, const In<T, 2> &queries, const In<int32_t, 2> &neighbors) {
  require(queries.shape(1) == X.shape(1), "queries must have as many columns as X");
  require(neighbors.shape(0) == queries.shape(0), "neighbors must have one row per query");
}

void check_neighbors(const In<int32_t, 2> &neighbors, size_t n_rows) {
  int32_t largest = -1;
  for (size_t e = 0; e < neighbors.size(); e++) largest = std::max(largest, neighbors.data()[e]);
  require(largest < 0 || size_t(largest) < n_rows, "neighbors names a row that X does not have");
}

// The queries of a group of lanes; lanes without a query repeat the last one.
template <class T> struct Group {
  static constexpr int W = Simd<T>::W;
  size_t begin, number[W];
  int used, status[W];
  const T *query[W];
  const int32_t *rows[W];

  // query_of: where the query of this number is
  template <class F>
  Group(size_t begin, const In<int32_t, 2> &neighbors, F query_of)
      : begin(begin), used(int(std::min<size_t>(W, neighbors.shape(0) - begin))) {
    for (int l = 0; l < W; l++) {
      number[l] = begin + std::min(l, used - 1);
      query[l] = query_of(number[l]);
      rows[l] = neighbors.data() + number[l] * neighbors.shape(1);
    }
  }

  // Values (k,) of all lanes, where element j of query e is at out[e * stride + j].
  void write(const typename Simd<T>::Vec *values, size_t k, T *out, size_t stride) const {
    for (int l = 0; l < used; l++)
      for (size_t j = 0; j < k; j++) out[(begin + l) * stride + j] = values[j][l];
  }
};

// Where predictions of all queries go.
template <class T> struct PredictionArrays {
  Out<T, 2> mean;          // (q, t)
  Out<T, 1> variance;      // (q,)
  Out<T, 2> scale;         // (q, t)
  Out<T, 1> dof;           // (q,)
  Out<int32_t, 1> status;  // (q,)

  void check(size_t q, size_t t) const {
    require(has_shape(mean, q, t) && has_shape(scale, q, t) && has_shape(variance, q) &&
                has_shape(dof, q) && has_shape(status, q),
            "the outputs must have one row per query");
  }

  // What a group's solver says after `solve`.
  void write(const LocalSolver<T> &solver, const Group<T> &group) {
    const size_t t = solver.problem.t;
    const auto tau2 = solver.latent_variance();
    for (size_t j = 0; j < t; j++) {
      const auto mu = solver.mean(int(j)), misfit = solver.misfit(int(j));
      for (int l = 0; l < group.used; l++) {
        const size_t e = (group.begin + l) * t + j;
        mean.data()[e] = mu[l];
        scale.data()[e] =
            T(posterior_scale(solver.problem, misfit[l], solver.n_effective[l]).value);
      }
    }
    for (int l = 0; l < group.used; l++) {
      variance.data()[group.begin + l] = tau2[l];
      dof.data()[group.begin + l] = T(solver.problem.scale_dof + solver.n_effective[l]);
      status.data()[group.begin + l] = group.status[l];
    }
  }
};

// Point p of query e of an area's points (q, n_points, d), as scaled differences in the lanes.
template <class T, class V>
void place_area(Area<V> &area, const Problem<T> &problem, const T *query, const T *points, int l) {
  const int d = problem.d;
  for (int k = 0; k < d; k++) {
    T sum = 0;
    for (int p = 0; p < area.n_points; p++) {
      const T offset = (points[p * d + k] - query[k]) * problem.inverse_lengthscale[k];
      area.offset[p * d + k][l] = offset;
      sum += offset;
    }
    area.center[k][l] = sum / T(area.n_points);
  }
}

template <class T>
void predict(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
             ModelTuple model, In<T, 2> queries /* (q, d) */,
             In<T, 3> points /* (q, p, d); p = 0: the queries themselves */,
             In<int32_t, 2> neighbors /* (q, m), -1 pads */, Out<T, 2> mean /* (q, t) */,
             Out<T, 1> variance /* (q,) */, Out<T, 2> scale /* (q, t) */,
             Out<T, 1> dof /* (q,) */, Out<int32_t, 1> status /* (q,) */) {
  constexpr int W = Simd<T>::W;
  std::vector<T> inverse;
  const Problem<T> problem = make_problem(X, y, noise, model, inverse);
  const size_t q = queries.shape(0), m = neighbors.shape(1), d = problem.d;
  const size_t n_points = points.shape(1), area_size = n_points * d;
  check_queries(X, queries, neighbors);
  PredictionArrays<T> predictions = {mean, variance, scale, dof, status};
  predictions.check(q, problem.t);
  require(has_shape(points, q, n_points, d),
          "points must have one area per query, and as many columns as X");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  Memory<typename Simd<T>::Vec> of_area(area_size + d);
  LocalSolver<T> solver(problem, int(m));
  solver.area = {int(n_points), of_area.data, of_area.data + area_size};
  for (size_t begin = 0; begin < q; begin += W) {
    Group<T> group(begin, neighbors, [&](size_t e) { return queries.data() + e * d; });
    for (int l = 0; n_points && l < W; l++)
      place_area(solver.area, problem, group.query[l],
                 points.data() + group.number[l] * area_size, l);
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), group.status);
    predictions.write(solver, group);
  }
}

template <class T>
void differentiate(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
                   ModelTuple model, In<T, 2> queries /* (q, d) */,
                   In<int32_t, 2> neighbors /* (q, m), -1 pads */, Out<T, 2> mean /* (q, t) */,
                   Out<T, 1> variance /* (q,) */, Out<T, 2> scale /* (q, t) */,
                   Out<T, 1> dof /* (q,) */, Out<int32_t, 1> status /* (q,) */,
                   Out<T, 3> mean_by_query /* (q, t, d) */,
                   Out<T, 2> variance_by_query /* (q, d) */,
                   Out<T, 3> scale_by_query /* (q, t, d) */, Out<T, 2> dof_by_query /* (q, d) */,
                   Out<T, 2> noise_unit_by_query /* (q, d) */) {
  std::vector<T> inverse;
  const Problem<T> problem = make_problem(X, y, noise, model, inverse);
  const size_t q = queries.shape(0), m = neighbors.shape(1), t = problem.t, d = problem.d;
  check_queries(X, queries, neighbors);
  PredictionArrays<T> predictions = {mean, variance, scale, dof, status};
  predictions.check(q, t);
  for (const Out<T, 3> *out : {&mean_by_query, &scale_by_query})
    require(has_shape(*out, q, t, d), "the derivatives must have one row per query");
  for (const Out<T, 2> *out : {&variance_by_query, &dof_by_query, &noise_unit_by_query})
    require(has_shape(*out, q, d), "the derivatives must have one row per query");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  Memory<typename Simd<T>::Vec> own(d);
  LocalGradient<T> solver(problem, int(m));
  for (size_t begin = 0; begin < q; begin += Simd<T>::W) {
    Group<T> group(begin, neighbors, [&](size_t e) { return queries.data() + e * d; });
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), group.status);
    predictions.write(solver, group);
    solver.prepare();
    for (size_t j = 0; j < t; j++) {
      solver.differentiate_mean(int(j), own.data);
      group.write(own.data, d, mean_by_query.data() + j * d, t * d);
      solver.differentiate_scale(int(j), own.data);
      group.write(own.data, d, scale_by_query.data() + j * d, t * d);
    }
    solver.differentiate_variance(own.data);
    group.write(own.data, d, variance_by_query.data(), d);
    solver.differentiate_dof(own.data);
    group.write(own.data, d, dof_by_query.data(), d);
    solver.differentiate_noise_unit(own.data);
    group.write(own.data, d, noise_unit_by_query.data(), d);
  }
}

template <class T>
void coefficients(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
                  ModelTuple model, In<T, 2> queries /* (q, d) */,
                  In<int32_t, 2> neighbors /* (q, m), -1 pads */, Out<T, 2> beta /* (q, m) */,
                  Out<T, 2> weight /* (q, m) */, Out<T, 1> variance /* (q,) */,
                  Out<int32_t, 1> status /* (q,) */) {
  std::vector<T> inverse;
  const Problem<T> problem = make_problem(X, y, noise, model, inverse);
  const size_t q = queries.shape(0), m = neighbors.shape(1);
  check_queries(X, queries, neighbors);
  require(has_shape(beta, q, m) && has_shape(weight, q, m) && has_shape(variance, q) &&
              has_shape(status, q),
          "the outputs must have one row per query, and one column per neighbor");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  LocalSolver<T> solver(problem, int(m), Kept::solution);
  for (size_t begin = 0; begin < q; begin += Simd<T>::W) {
    Group<T> group(begin, neighbors, [&](size_t e) { return queries.data() + e * problem.d; });
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), group.status);
    solver.back_substitute(1);
    for (int l = 0; l < group.used; l++)
      for (size_t i = 0; i < m; i++) {
        // Rows behind the last one of positive weight are not in the system.
        const bool in = int(i) < solver.rows && solver.space.present[i][l] > 0;
        beta.data()[(begin + l) * m + i] = in ? solver.beta()[i][l] : T(0);
        weight.data()[(begin + l) * m + i] = in ? solver.space.weight[i][l] : T(0);
      }
    const auto tau2 = solver.latent_variance();
    group.write(&tau2, 1, variance.data(), 1);
    std::copy_n(group.status, group.used, status.data() + begin);
  }
}

template <class T>
void score(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
           ModelTuple model, In<int32_t, 1> targets /* (q,) rows of X */,
           In<int32_t, 2> neighbors /* (q, m), -1 pads */, int objective,
           Out<double, 1> loss /* (q,) */, Out<double, 2> gradient /* (q, d + 6) */,
           Out<int32_t, 1> status /* (q,) */) {
  constexpr int W = Simd<T>::W;
  std::vector<T> inverse;
  const Problem<T> problem = make_problem(X, y, noise, model, inverse);
  const size_t q = targets.shape(0), m = neighbors.shape(1), p = problem.d + N_SHARED_PARAMETERS;
  require(objective >= 0 && objective <= int(Objective::squared_error),
          "no objective has this code");
  require(neighbors.shape(0) == q, "neighbors must have one row per target");
  require(has_shape(loss, q) && has_shape(status, q) && has_shape(gradient, q, p),
          "the outputs must have one row per target");
  for (size_t e = 0; e < q; e++)
    require(targets.data()[e] >= 0 && size_t(targets.data()[e]) < X.shape(0),
            "targets names a row that X does not have");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  LocalScorer<T> scorer(problem, int(m));
  std::vector<double> lane_gradient(W * p);
  for (size_t begin = 0; begin < q; begin += W) {
    Group<T> group(begin, neighbors,
                   [&](size_t e) { return X.data() + targets.data()[e] * X.shape(1); });
    size_t rows[W];
    double lane_loss[W];
    for (int l = 0; l < W; l++) rows[l] = targets.data()[group.number[l]];
    scorer.gather(group.query, group.rows, int(m));
    scorer.weigh();
    scorer.template solve<true>(int(m), group.status);
    scorer.evaluate(Objective(objective), rows, lane_loss);
    scorer.differentiate(lane_gradient.data());
    std::copy_n(lane_loss, group.used, loss.data() + begin);
    std::copy_n(lane_gradient.data(), group.used * p, gradient.data() + begin * p);
    std::copy_n(group.status, group.used, status.data() + begin);
  }
}

template <class T> void exponentials(In<T, 1> x /* (k,) */, Out<T, 1> values /* (k,) */) {
  constexpr size_t W = Simd<T>::W;
  require(values.shape(0) == x.shape(0), "values must be as long as x");
  for (size_t begin = 0; begin < x.shape(0); begin += W) {
    const size_t used = std::min(W, x.shape(0) - begin);
    typename Simd<T>::Vec v = {};
    std::memcpy(&v, x.data() + begin, used * sizeof(T));
    v = exp(v);
    std::memcpy(values.data() + begin, &v, used * sizeof(T));
  }
}

template <class T> size_t workspace_bytes(int m, int d, int t, int n_apart, bool gradient) {
  const Kept kept = gradient ? Kept::pairs : Kept::factor;
  return Workspace<T>(nullptr, m, d, t, n_apart, kept).n_vectors * sizeof(typename Simd<T>::Vec);
}

template <class T> void bind(nb::module_ &m, const std::string &suffix) {
  define(m, ("predict" + suffix).c_str(), predict<T>);
  define(m, ("differentiate" + suffix).c_str(), differentiate<T>);
  define(m, ("coefficients" + suffix).c_str(), coefficients<T>);
  define(m, ("score" + suffix).c_str(), score<T>);
  define(m, ("exponentials" + suffix).c_str(), exponentials<T>);
  define(m, ("workspace_bytes" + suffix).c_str(), workspace_bytes<T>);
}

}  // namespace

void bind_solve(nb::module_ &m) {
  bind<double>(m, "_float64");
  bind<float>(m, "_float32");
}
