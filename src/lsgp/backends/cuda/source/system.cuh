// SPDX-License-Identifier: BSD-3-Clause
// The local system of one query, solved by the threads of a block: any size, any number of targets,
// the trend in the matrix or apart. It follows _core/local_solve.h statement by statement.
#pragma once

namespace lsgp {

// All that one query needs, in two allocations: its vectors and its matrix.
template <class T> struct Workspace {
  T *z;         // (d, rows) scaled differences to the query
  T *r2;        // (rows,) squared scaled distances
  T *weight;    // (rows,) localizer's value
  T *by_s;      // (rows,) its derivative in u²
  T *by_decay;  // (rows,) and in the decay
  T *present;   // (rows,) 1 where the point is in the system, else 0
  T *noise;     // (rows,) multiplier v of [E2]
  T *y;         // (t, rows)
  T *solution;  // (n_solutions, rows) beta and the alphas
  T *adjoint;   // (1 + t, rows) their partners in the adjoint of A [E8], score only
  T *adjoint_k; // (rows,) that of k, score only
  T *gram;      // (a + 1 + t, a) factor of the trend's precision, then kappa and the thetas
  T *diagonal;  // (a,) of the precision, then adjoints of the trend's coefficients
  T *inverse;   // (a,) 1 / the factor's diagonal
  T *column;    // (4, t) mean and misfit of each target, then adjoints of both
  T *slopes;    // (d,) score only
  Triangle<T> A;
  int capacity;

  // `Shape.n_vectors` in workspace.py is the sum of what is taken here.
  Workspace(T *vectors, T *matrix, int m, int d, int t, int a, int n_solutions, bool gradient) {
    // At least one tile: a query without neighbors still has a system, of rows that are out of it.
    capacity = ((m > 1 ? m : 1) + TILE - 1) / TILE * TILE;
    T *p = vectors;
    auto take = [&p](int n) { T *q = p; p += n; return q; };
    z = take(capacity * d);
    r2 = take(capacity);
    weight = take(capacity);
    by_s = take(capacity);
    by_decay = take(capacity);
    present = take(capacity);
    noise = take(capacity);
    y = take(capacity * t);
    solution = take(capacity * n_solutions);
    adjoint = take(gradient ? capacity * (1 + t) : 0);
    adjoint_k = take(gradient ? capacity : 0);
    gram = take((a + 1 + t) * a);
    diagonal = take(a);
    inverse = take(a);
    column = take(4 * t);
    slopes = take(gradient ? d : 0);
    A = {matrix, capacity / TILE, (1 + t + a + TILE - 1) / TILE, capacity / TILE};
  }
};

// What all threads learn together of the neighbors, in one reduction each, which is two barriers:
// the farthest neighbor, of several as far the first, and whether a squared distance is NaN or
// infinite;
template <class T> struct Farthest {
  T r2;
  int row, is_bad;

  static Farthest of(Farthest a, Farthest b) {
    const bool is_second = b.r2 > a.r2 || (b.r2 == a.r2 && b.row < a.row);
    return {is_second ? b.r2 : a.r2, is_second ? b.row : a.row, a.is_bad | b.is_bad};
  }
};

// sums over the points in the system, and the last of them.
template <class T> struct Counted {
  T weights, r2, points;
  int last;

  static Counted of(Counted a, Counted b) {
    return {a.weights + b.weights, a.r2 + b.r2, a.points + b.points,
            a.last > b.last ? a.last : b.last};
  }
};

template <class T> struct LocalSystem {
  typedef Limits<T> L;
  const Problem<T> &problem;
  Workspace<T> &space;
  int rows;          // rows in use, a multiple of TILE
  int farthest;      // the neighbor that sets the adaptive bandwidth
  T h2;              // squared bandwidth
  T n_effective;     // sum of min(w, 1)
  T trend;           // its mean on the diagonal of the covariance
  T trend_variance;  // what the trend apart adds to the latent variance
  T k_dot_k;         // of what forward substitution leaves of k
  bool not_finite;   // whether a squared distance is NaN or infinite

  LocalSystem(const Problem<T> &problem, Workspace<T> &space) : problem(problem), space(space) {}

  T mean_diagonal() const { return T(1) + trend; }  // of the covariance

  // The neighbors of the query, their distances, bandwidth and weights.
  void gather(const T *query, const int *neighbors, int m) {
    const int d = problem.d, t = problem.t, capacity = space.capacity;
    Farthest<T> reach = {T(0), capacity, 0};
    for (int i = rank(); i < capacity; i += n_threads()) {
      const int index = i < m ? neighbors[i] : -1;
      const T *x = index < 0 ? query : problem.X + (long long)index * d;
      T sum = 0;
      auto scale = [&](T value, T at_query, int k) {
        const T z = (value - at_query) * problem.inverse_lengthscale[k];
        space.z[k * capacity + i] = z;
        sum += z * z;
      };
      int k = 0;
      if (d % TILE == 0)  // rows begin where four numbers are read at once
        for (; k < d; k += TILE) {
          const Four<T> four = load_four(x + k), at_query = load_four(query + k);
#pragma unroll
          for (int e = 0; e < TILE; e++) scale(four.at[e], at_query.at[e], k + e);
        }
      for (; k < d; k++) scale(x[k], query[k], k);
      for (int j = 0; j < t; j++)
        space.y[j * capacity + i] = index < 0 ? T(0) : problem.y[(long long)index * t + j];
      space.noise[i] = index < 0 ? T(1) : problem.noise[index];
      space.present[i] = index < 0 ? T(0) : T(1);
      space.r2[i] = sum;
      reach.is_bad |= !(sum - sum == T(0));
      if (index >= 0 && sum > reach.r2) reach.r2 = sum, reach.row = i;
    }
    reach = reduce(reach, Farthest<T>::of);
    not_finite = reach.is_bad != 0;
    h2 = reach.r2;
    farthest = reach.row < capacity ? reach.row : 0;
    weigh();
  }

  void weigh() {
    if (problem.bandwidth > 0) h2 = T(problem.bandwidth * problem.bandwidth);
    const T unit = problem.weight_unit(h2);
    Counted<T> counted = {T(0), T(0), T(0), -1};
    for (int i = rank(); i < space.capacity; i += n_threads()) {
      const Weight<T> w = problem.weight_of(space.r2[i], h2, unit);
      const bool in = w.value > L::SMALLEST_WEIGHT && space.present[i] > 0;
      space.weight[i] = in ? w.value : T(0);
      space.by_s[i] = in ? w.by_s : T(0);
      space.by_decay[i] = in ? w.by_decay : T(0);
      space.present[i] = in ? T(1) : T(0);
      if (!in) continue;
      counted.weights += w.value < T(1) ? w.value : T(1);
      counted.r2 += space.r2[i];
      counted.points += T(1);
      counted.last = i;
    }
    counted = reduce(counted, Counted<T>::of);
    n_effective = counted.weights;
    trend = T(problem.constant_variance) + T(problem.slope_variance) * counted.r2 /
                                               (counted.points > T(1) ? counted.points : T(1));
    // Points that are out of the system need no rows.
    rows = (counted.last + TILE) / TILE * TILE;
    rows = rows > TILE ? rows : TILE;
    space.A.n_tiles = rows / TILE;
  }

  // [E1], [E2] into the tiles, with this jitter on the diagonal.
  void assemble(T jitter) {
    for (TriangleWalk at(space.A.n_tiles); at.is_there(); at.next()) assemble_tile(at.I, at.J);
    __syncthreads();
    right_hand_sides();
    put_on_diagonal(jitter);
    __syncthreads();
  }

  // Squared scaled distances of the points of a tile.
  void squared_distances(int I, int J, T *pair) const {
#pragma unroll
    for (int e = 0; e < TILE_SIZE; e++) pair[e] = 0;
    const T *x = space.z + I * TILE, *y = space.z + J * TILE;
    for (int k = 0; k < problem.d; k++, x += space.capacity, y += space.capacity) {
      const Four<T> left = load_four(x), right = load_four(y);
#pragma unroll
      for (int b = 0; b < TILE; b++)
#pragma unroll
        for (int a = 0; a < TILE; a++) {
          const T difference = left.at[a] - right.at[b];
          pair[b * TILE + a] += difference * difference;
        }
    }
  }

  // All but the diagonal.
  void assemble_tile(int I, int J) {
    const T c = T(problem.constant_variance), half_b = T(0.5 * problem.slope_variance);
    const bool trend = problem.has_trend_in_matrix();
    T pair[TILE_SIZE], tile[TILE_SIZE];
    squared_distances(I, J, pair);
    // Only these few statements are there once for each kernel.
    with_kernel(problem.kernel, [&](auto kernel) {
#pragma unroll
      for (int e = 0; e < TILE_SIZE; e++) tile[e] = decltype(kernel)::at(pair[e]).value;
    });
    const Four<T> r2_i = load_four(space.r2 + I * TILE), r2_j = load_four(space.r2 + J * TILE),
                  in_i = load_four(space.present + I * TILE),
                  in_j = load_four(space.present + J * TILE);
    if (trend) {
#pragma unroll
      for (int b = 0; b < TILE; b++)
#pragma unroll
        for (int a = 0; a < TILE; a++)  // zᵢ·zⱼ from the three squared distances
          tile[b * TILE + a] += c + half_b * (r2_i.at[a] + r2_j.at[b] - pair[b * TILE + a]);
    }
    T all_in = 1;
#pragma unroll
    for (int a = 0; a < TILE; a++) all_in *= in_i.at[a] * in_j.at[a];
    if (!(all_in > 0)) {
      // Points out of the system: a row of a diagonal matrix.
#pragma unroll
      for (int b = 0; b < TILE; b++)
#pragma unroll
        for (int a = 0; a < TILE; a++)
          if (!(in_i.at[a] * in_j.at[b] > 0)) tile[b * TILE + a] = T(0);
    }
    store_tile(space.A.tile(I, J), tile);
  }

  // Apart from the tiles, few of which have a part of it: a warp would wait for those.
  void put_on_diagonal(T jitter) {
    const T c = T(problem.constant_variance), half_b = T(0.5 * problem.slope_variance);
    for (int i = rank(); i < rows; i += n_threads()) {
      const bool in = space.present[i] > 0;
      const T weight = in ? space.weight[i] : T(1);
      const T trended = T(1) + c + half_b * (space.r2[i] + space.r2[i]) + jitter;
      const T value = trended + T(problem.noise_variance) * space.noise[i] / weight;
      T *tile = space.A.tile(i / TILE, i / TILE);
      tile[i % TILE * (TILE + 1)] = in ? value : mean_diagonal();
    }
  }

  void right_hand_sides() {
    const int t = problem.t, n_apart = problem.n_apart();
    for (int i = rank(); i < rows; i += n_threads()) {
      const bool in = space.present[i] > 0;
      const T k = correlation(space.r2[i]).value + T(problem.constant_variance);
      for (int which = 0; which < space.A.n_rhs_tiles * TILE; which++) {
        T value = 0;
        if (which == 0) value = k;
        else if (which <= t) value = space.y[(which - 1) * space.capacity + i];
        else if (which <= t + n_apart) value = basis(which - t - 1, i);
        rhs(which, i) = in ? value : T(0);
      }
    }
  }

  Correlation<T> correlation(T r2) const {
    Correlation<T> rho;
    with_kernel(problem.kernel, [&](auto kernel) { rho = decltype(kernel)::at(r2); });
    return rho;
  }

  // h0 of [E10]: column p of H, the basis of the trend apart, at the query.
  T basis_at_query(int p) const { return problem.input_of(p) < 0 ? T(1) : T(0); }
  // And at neighbor i.
  T basis(int p, int i) const {
    const int k = problem.input_of(p);
    return k < 0 ? T(1) : space.z[k * space.capacity + i];
  }

  // Row `which` of the right-hand sides (0: cross-covariance, 1 .. t: targets, then the columns
  // of H), entry i.
  T &rhs(int which, int i) const {
    return space.A.row(space.A.n_tiles + which / TILE)[Triangle<T>::column(i) + which % TILE];
  }
  // By the lanes of a warp.
  T rhs_dot(int p, int q) const {
    T sum = 0;
    for (int i = rank() % WARP; i < rows; i += WARP) sum += rhs(p, i) * rhs(q, i);
    return reduce_lanes(sum, Sum{});
  }
  int warp() const { return rank() / WARP; }
  int n_warps() const { return n_threads() / WARP; }

  // Assemble and factor. A system that fails is to be solved again, with more digits or with the
  // trend apart; where there is nothing else to try, with growing jitter.
  int solve() {
    int status = STATUS_OK;
    bool failed = false;
    T least = mean_diagonal();
    for (double level = 0;; level = level > 0 ? 10 * level : FIRST_JITTER) {
      failed = false;
      assemble(T(level) * mean_diagonal());
      factor(space.A, mean_diagonal() * L::SMALLEST_PIVOT, failed, least);
      if (!failed || not_finite || !problem.is_last_resort()) break;
      status = STATUS_JITTERED;
      if (level > LAST_JITTER / 2) {
        status = STATUS_NOT_POSITIVE_DEFINITE;
        break;
      }
    }
    if (not_finite) status = STATUS_NOT_FINITE;
    if (!problem.is_last_resort()) {
      bool imprecise = (failed && !not_finite) || trend > T(LARGEST_TREND_IN_MATRIX);
      if (L::IS_SINGLE) imprecise |= least < L::PRECISE_PIVOT * mean_diagonal() || not_finite;
      if (imprecise) status = STATUS_IMPRECISE;
    }
    trend_variance = 0;
    k_dot_k = rhs_dot(0, 0);
    if (problem.n_apart() > 0) put_back_trend(status);
    if (L::IS_SINGLE) {
      const T prior = prior_variance();
      if (!(prior - k_dot_k + trend_variance > L::PRECISE_VARIANCE * prior))
        status = STATUS_IMPRECISE;
    }
    summarize();
    return status;
  }

  T prior_variance() const { return T(1 + problem.constant_variance); }
  T *kappa() const { return space.gram + problem.n_apart() * problem.n_apart(); }
  T *theta(int j) const { return kappa() + (1 + j) * problem.n_apart(); }

  // [E10] The trend apart: see _core/local_solve.h. The moments of the targets and of the query are
  // rows below the precision, as right-hand sides are below A.
  void put_back_trend(int &status) {
    const int a = problem.n_apart(), t = problem.t, first = 1 + t, n_rows = a + 1 + t;
    for (int e = warp(); e < n_rows * a; e += n_warps()) {
      const int r = e / a, p = e % a;
      if (r < p) continue;
      T value = rhs_dot(first + p, r < a ? first + r : r - a);
      if (r == p) value += problem.precision_of(p);
      if (r == a) value = basis_at_query(p) - value;
      if (rank() % WARP == 0) space.gram[e] = value;
    }
    __syncthreads();
    for (int p = rank(); p < a; p += n_threads()) space.diagonal[p] = space.gram[p * a + p];
    bool undetermined = false, imprecise = false;
    for (int p = 0; p < a; p++) {
      __syncthreads();
      const T precision = problem.precision_of(p), diagonal = space.diagonal[p];
      T pivot = space.gram[p * a + p];
      imprecise |= !(pivot > L::PRECISE_PIVOT * diagonal);
      // No pivot is below the prior's precision, but for rounding. Without a prior, a column that
      // others imply has no pivot: its coefficient is unknown.
      pivot = pivot > precision ? pivot : precision;
      const bool known = pivot > (precision > 0 ? T(0) : L::KNOWN_PIVOT * diagonal);
      const T inverse = known ? T(1) / sqrt(pivot) : T(0);
      const T rest = kappa()[p];
      // The query depends on a coefficient that nothing is known of.
      undetermined |=
          !known && rest * rest > L::EPSILON * (diagonal + basis_at_query(p));
      trend_variance += (rest * inverse) * (rest * inverse);
      __syncthreads();
      for (int r = p + 1 + rank(); r < n_rows; r += n_threads()) space.gram[r * a + p] *= inverse;
      if (rank() == 0) space.inverse[p] = inverse;
      __syncthreads();
      for (int r = p + 1 + rank(); r < n_rows; r += n_threads()) {
        const T own = space.gram[r * a + p];
        for (int q = p + 1; q < a && q <= r; q++)
          space.gram[r * a + q] -= own * space.gram[q * a + p];
      }
    }
    __syncthreads();
    for (int which = rank(); which <= t; which += n_threads()) {
      T *x = kappa() + which * a;
      for (int p = a - 1; p >= 0; p--) {
        for (int q = p + 1; q < a; q++) x[p] -= space.gram[q * a + p] * x[q];
        x[p] *= space.inverse[p];
      }
    }
    __syncthreads();
    // ỹ - H̃ theta in place of ỹ.
    for (int i = rank(); i < rows; i += n_threads())
      for (int j = 0; j < t; j++) {
        T value = rhs(1 + j, i);
        for (int p = 0; p < a; p++) value -= theta(j)[p] * rhs(first + p, i);
        rhs(1 + j, i) = value;
      }
    __syncthreads();
    if (status > STATUS_JITTERED) return;
    if (L::IS_SINGLE && imprecise) status = STATUS_IMPRECISE;
    else if (undetermined) status = STATUS_UNDETERMINED;
  }

  T &mean(int j) const { return space.column[j]; }
  T &misfit(int j) const { return space.column[problem.t + j]; }

  // Mean [E4] and misfit yᵀα [E6] of each target.
  void summarize() {
    for (int j = warp(); j < problem.t; j += n_warps()) {
      T of_mean = rhs_dot(0, 1 + j), of_misfit = rhs_dot(1 + j, 1 + j);
      if (rank() % WARP) continue;
      if (problem.has_constant_apart) of_mean += theta(j)[0];
      for (int p = 0; p < problem.n_apart(); p++)
        of_misfit += problem.precision_of(p) * theta(j)[p] * theta(j)[p];
      mean(j) = of_mean;
      misfit(j) = of_misfit;
    }
    __syncthreads();
  }

  T latent_variance() const {  // [E5]
    const T prior = prior_variance();
    const T variance = prior - k_dot_k, floor = L::SMALLEST_VARIANCE * prior;
    return (variance > floor ? variance : floor) + trend_variance;
  }

  // beta of [E3] into the first solution, and alphas into the n - 1 others.
  void back_substitute(int n) {
    const int a = problem.n_apart(), t = problem.t;
    for (int s = 0; s < n; s++)
      for (int i = rank(); i < rows; i += n_threads()) {
        T value = rhs(s, i);
        // The part of a trend apart [E10] is in the targets' right-hand sides already.
        for (int p = 0; s == 0 && p < a; p++) value += kappa()[p] * rhs(1 + t + p, i);
        space.solution[s * space.capacity + i] = value;
      }
    __syncthreads();
    solve_transposed(space.A, space.solution, n, space.capacity);
  }
};

}  // namespace lsgp

// What the kernels for any problem begin with: a block of threads solves one query after another.
// LSGP_VECTORS_SHARED and LSGP_MATRIX_SHARED say which part of the workspace is in shared memory, at
// compile time, so that the compiler knows which kind of memory it reads. The other parts are
// `scratch`, n_scratch elements for each block, vectors first.
#define LSGP_WORKSPACE(n_solutions, gradient)                                                     \
  LSGP_SHARED_MEMORY;                                                                             \
  T *of_block = reinterpret_cast<T *>(lsgp_memory);                                               \
  T *vectors = LSGP_VECTORS_SHARED ? of_block : scratch + blockIdx.x * n_scratch;                 \
  T *matrix = LSGP_MATRIX_SHARED ? of_block + n_vectors                                           \
                                 : scratch + blockIdx.x * n_scratch +                             \
                                       (LSGP_VECTORS_SHARED ? 0 : n_vectors);                     \
  const lsgp::Problem<T> problem = LSGP_PROBLEM(T);                                               \
  lsgp::Workspace<T> space(vectors, matrix, m, d, t, problem.n_apart(), n_solutions, gradient)
