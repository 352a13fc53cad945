// SPDX-License-Identifier: BSD-3-Clause
// `predict`, `differentiate`, `coefficients` and `score` of the native core: a block of queries, in
// groups of W lanes. The GIL is released; Python threads run the blocks.
#include <cstring>
#include <string>
#include <vector>

#include "local_gradient.h"
#include "local_score.h"
#include "solve_arrays.h"

namespace nb = nanobind;
using namespace lsgp;

namespace {

// Point p of query e of an area's points (q, n_points, d), as scaled differences in the lanes.
template <class T, class V>
void place_area(Area<V> &area, const Problem<T> &problem, const T *query, const T *points, int l) {
  const int d = problem.d;
  for (int k = 0; k < d; k++) {
    T sum = 0;
    for (int p = 0; p < area.n_points; p++) {
      const T offset = (points[p * d + k] - query[k]) * T(1 / problem.lengthscale[k]);
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
  const Problem<T> problem = make_problem(X, y, noise, model);
  const size_t q = queries.shape(0), m = neighbors.shape(1);
  const size_t n_points = points.shape(1), area_size = n_points * problem.d;
  PredictionArrays<T> predictions = {mean, variance, scale, dof, status};
  predictions.check(problem, queries, neighbors);
  require(has_shape(points, q, n_points, X.shape(1)),
          "points must have one area per query, and as many columns as X");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  typedef typename Simd<T>::Vec V;
  Memory<V> memory(
      Workspace<T>::size(int(m), problem.d, problem.t, problem.n_apart(), Kept::factor));
  Memory<V> of_area(area_size + problem.d);
  LocalSolver<T> solver(problem, memory.data, int(m));
  solver.area = {int(n_points), of_area.data, of_area.data + area_size};
  for (size_t begin = 0; begin < q; begin += Simd<T>::W) {
    const Group<T> group(queries, neighbors, begin);
    for (int l = 0; n_points && l < Simd<T>::W; l++)
      place_area(solver.area, problem, group.query[l],
                 points.data() + group.number(l) * area_size, l);
    int code[Simd<T>::W];
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), code);
    predictions.write(solver, group, code);
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
  typedef typename Simd<T>::Vec V;
  const Problem<T> problem = make_problem(X, y, noise, model);
  const size_t q = queries.shape(0), m = neighbors.shape(1), t = problem.t, d = problem.d;
  PredictionArrays<T> predictions = {mean, variance, scale, dof, status};
  predictions.check(problem, queries, neighbors);
  for (const Out<T, 3> *out : {&mean_by_query, &scale_by_query})
    require(has_shape(*out, q, t, d), "the derivatives must have one row per query");
  for (const Out<T, 2> *out : {&variance_by_query, &dof_by_query, &noise_unit_by_query})
    require(has_shape(*out, q, d), "the derivatives must have one row per query");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  const size_t size =
      Workspace<T>::size(int(m), problem.d, problem.t, problem.n_apart(), Kept::solution);
  Memory<V> memory(size + d);
  LocalGradient<T> solver(problem, memory.data, int(m));
  V *own = memory.data + size;  // (d,)
  for (size_t begin = 0; begin < q; begin += Simd<T>::W) {
    const Group<T> group(queries, neighbors, begin);
    int code[Simd<T>::W];
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), code);
    predictions.write(solver, group, code);
    solver.back_substitute();
    solver.prepare();
    for (size_t j = 0; j < t; j++) {
      solver.differentiate_mean(int(j), own);
      group.write(own, d, mean_by_query.data() + j * d, t * d);
      solver.differentiate_scale(int(j), own);
      group.write(own, d, scale_by_query.data() + j * d, t * d);
    }
    solver.differentiate_variance(own);
    group.write(own, d, variance_by_query.data(), d);
    solver.differentiate_dof(own);
    group.write(own, d, dof_by_query.data(), d);
    solver.differentiate_noise_unit(own);
    group.write(own, d, noise_unit_by_query.data(), d);
  }
}

template <class T>
void coefficients(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
                  ModelTuple model, In<T, 2> queries /* (q, d) */,
                  In<int32_t, 2> neighbors /* (q, m), -1 pads */, Out<T, 2> beta /* (q, m) */,
                  Out<T, 2> weight /* (q, m) */, Out<T, 1> variance /* (q,) */,
                  Out<int32_t, 1> status /* (q,) */) {
  constexpr int W = Simd<T>::W;
  typedef typename Simd<T>::Vec V;
  const Problem<T> problem = make_problem(X, y, noise, model);
  const size_t q = queries.shape(0), m = neighbors.shape(1);
  require(queries.shape(1) == X.shape(1), "queries must have as many columns as X");
  require(neighbors.shape(0) == q, "neighbors must have one row per query");
  require(has_shape(beta, q, m) && has_shape(weight, q, m) && has_shape(variance, q) &&
              has_shape(status, q),
          "the outputs must have one row per query, and one column per neighbor");
  nb::gil_scoped_release release;
  check_neighbors(neighbors, X.shape(0));
  Memory<V> memory(
      Workspace<T>::size(int(m), problem.d, problem.t, problem.n_apart(), Kept::factor));
  Memory<V> solution(Workspace<T>::rows_of(int(m)));
  LocalSolver<T> solver(problem, memory.data, int(m));
  for (size_t begin = 0; begin < q; begin += W) {
    const Group<T> group(queries, neighbors, begin);
    int code[W];
    solver.gather(group.query, group.rows, int(m));
    solver.weigh();
    solver.template solve<false>(int(m), code);
    const V tau2 = solver.latent_variance();
    solver.coefficients(solution.data);
    for (int l = 0; l < group.used; l++) {
      for (size_t i = 0; i < m; i++) {
        // Rows behind the last one of positive weight are not in the system.
        const bool in = int(i) < solver.rows && solver.space.present[i][l] > 0;
        beta.data()[(begin + l) * m + i] = in ? solution.data[i][l] : T(0);
        weight.data()[(begin + l) * m + i] = in ? solver.space.weight[i][l] : T(0);
      }
      variance.data()[begin + l] = tau2[l];
      status.data()[begin + l] = code[l];
    }
  }
}

template <class T>
void score(In<T, 2> X /* (n, d) */, In<T, 2> y /* (n, t) */, In<T, 1> noise /* (n,) */,
           ModelTuple model, In<int32_t, 1> targets /* (q,) rows of X */,
           In<int32_t, 2> neighbors /* (q, m), -1 pads */, int objective,
           Out<double, 1> loss /* (q,) */, Out<double, 2> gradient /* (q, d + 6) */,
           Out<int32_t, 1> status /* (q,) */) {
  constexpr int W = Simd<T>::W;
  typedef typename Simd<T>::Vec V;
  const Problem<T> problem = make_problem(X, y, noise, model);
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
  Memory<V> memory(Workspace<T>::size(int(m), problem.d, problem.t, problem.n_apart(), Kept::pairs));
  LocalScorer<T> scorer(problem, memory.data, int(m));
  std::vector<double> lane_gradient(W * p);
  for (size_t begin = 0; begin < q; begin += W) {
    const int used = int(std::min<size_t>(W, q - begin));
    const T *query[W], *observed[W];
    const int32_t *rows[W];
    T target_noise[W];
    for (int l = 0; l < W; l++) {
      const size_t e = begin + std::min(l, used - 1), row = targets.data()[e];
      query[l] = problem.X + row * problem.d;
      observed[l] = problem.y + row * problem.t;
      target_noise[l] = problem.noise[row];
      rows[l] = neighbors.data() + e * m;
    }
    int code[W];
    double lane_loss[W];
    scorer.gather(query, rows, int(m));
    scorer.weigh();
    scorer.template solve<true>(int(m), code);
    scorer.back_substitute();
    scorer.evaluate(Objective(objective), observed, target_noise, lane_loss);
    scorer.differentiate(lane_gradient.data());
    for (int l = 0; l < used; l++) {
      loss.data()[begin + l] = lane_loss[l];
      status.data()[begin + l] = code[l];
      std::copy_n(lane_gradient.data() + l * p, p, gradient.data() + (begin + l) * p);
    }
  }
}

template <class T> void exponentials(In<T, 1> x /* (k,) */, Out<T, 1> values /* (k,) */) {
  constexpr size_t W = Simd<T>::W;
  typedef typename Simd<T>::Vec V;
  require(values.shape(0) == x.shape(0), "values must be as long as x");
  for (size_t begin = 0; begin < x.shape(0); begin += W) {
    const size_t used = std::min(W, x.shape(0) - begin);
    V v = {};
    std::memcpy(&v, x.data() + begin, used * sizeof(T));
    v = exp(v);
    std::memcpy(values.data() + begin, &v, used * sizeof(T));
  }
}

template <class T> size_t workspace_bytes(int m, int d, int t, int n_apart, bool gradient) {
  return Workspace<T>::size(m, d, t, n_apart, gradient ? Kept::pairs : Kept::factor) *
         sizeof(typename Simd<T>::Vec);
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
