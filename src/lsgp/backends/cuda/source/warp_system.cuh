// SPDX-License-Identifier: BSD-3-Clause
// Small systems, one warp per query, the matrix in registers: M is 32 or 64, and lane
// l has the rows l and, if there are so many, l + 32. One target, the trend in the matrix. What fails
// or has lost its digits gets STATUS_IMPRECISE, and is solved again by the general kernel.
//
// The factor is left-looking, by panels of 4 columns: the 4 rows of a panel go to all lanes through
// shared memory, each lane subtracts their products from its own 4 entries of either row, and all
// factor the 4 x 4 diagonal block alike. So there are 16 waits for other lanes rather than 64, and 8
// sums that do not wait for each other. Right-hand sides are updated panel by panel.
#pragma once

namespace lsgp {

template <class T, int M> struct WarpMemory {
  static constexpr int STRIDE = M + 4, CHUNK = 8, PANEL_WIDTH = 4;
  T z[CHUNK * STRIDE];               // (inputs, rows) scaled differences to the query
  T panel[2 * PANEL_WIDTH * M];      // rows of a panel, in turns
  T r2[M];                           // squared scaled distances
};

template <class V> inline V from_lane(V value, int lane) {
  return __shfl_sync(ALL_LANES, value, lane);
}

// KEEPS: whether what backward substitution needs is kept.
template <class T, int M, bool KEEPS = false> struct WarpSystem {
  typedef Limits<T> L;
  static constexpr bool HAS_SECOND = M > 32;
  static constexpr int N_SECOND = HAS_SECOND ? M : 1, PANEL_WIDTH = 4;
  static constexpr int N_PANELS = M / PANEL_WIDTH;

  const Problem<T> &problem;
  WarpMemory<T, M> &memory;
  const int lane;
  T first[32], second[N_SECOND];  // entries of the lane's rows
  T y[2], k[2], r2[2], extra[2];  // of these rows; extra: what the diagonal has more
  T present[2];
  T h2, n_effective, mean_diagonal, trend, least;
  T yy, yk, kk;  // products of what forward substitution leaves
  T inverse[2], of_y_kept[2], of_k_kept[2];  // 1/L and what it leaves in the lane's rows
  int farthest;  // the neighbor that sets the adaptive bandwidth
  int rows;
  bool failed, not_finite;

  WarpSystem(const Problem<T> &problem, WarpMemory<T, M> &memory, int lane)
      : problem(problem), memory(memory), lane(lane) {}

  // Squared distances between the neighbors, and to the query.
  void measure(const T *query, int i0, int i1) {
    typedef WarpMemory<T, M> Memory;
    const int d = problem.d;
#pragma unroll
    for (int j = 0; j < 32; j++) first[j] = 0;
#pragma unroll
    for (int j = 0; j < N_SECOND; j++) second[j] = 0;
    r2[0] = r2[1] = 0;
    for (int k0 = 0; k0 < d; k0 += Memory::CHUNK) {
      place_chunk(query, i0, i1, k0);
      const int n = d - k0 < Memory::CHUNK ? d - k0 : Memory::CHUNK;
#pragma unroll 1
      for (int c = 0; c < n; c++) add_squares(memory.z + c * Memory::STRIDE);
    }
  }
  // Scaled differences to the query, of some inputs.
  void place_chunk(const T *query, int i0, int i1, int k0) {
    typedef WarpMemory<T, M> Memory;
    const int d = problem.d, n = d - k0 < Memory::CHUNK ? d - k0 : Memory::CHUNK;
    const T *x0 = i0 < 0 ? query : problem.X + (long long)i0 * d;
    const T *x1 = i1 < 0 ? query : problem.X + (long long)i1 * d;
    __syncwarp();
    if (d % 4 == 0) {
      for (int c = 0; c < n; c += 4) {
        place(query, k0, c, load_four(x0 + k0 + c), lane);
        if (HAS_SECOND) place(query, k0, c, load_four(x1 + k0 + c), lane + 32);
      }
    } else {
      for (int c = 0; c < n; c++) {
        place(query, k0, c, x0[k0 + c], lane);
        if (HAS_SECOND) place(query, k0, c, x1[k0 + c], lane + 32);
      }
    }
    __syncwarp();
  }
  void place(const T *query, int k0, int c, T x, int row) {
    memory.z[c * WarpMemory<T, M>::STRIDE + row] =
        (x - query[k0 + c]) * problem.inverse_lengthscale[k0 + c];
  }
  void place(const T *query, int k0, int c, Four<T> x, int row) {
#pragma unroll
    for (int e = 0; e < 4; e++) place(query, k0, c + e, x.at[e], row);
  }
  void add_squares(const T *z) {
    const T z0 = z[lane], z1 = HAS_SECOND ? z[lane + 32] : T(0);
    r2[0] += z0 * z0;
    r2[1] += z1 * z1;
#pragma unroll
    for (int j = 0; j < M; j += 4) {
      const Four<T> other = load_four(z + j);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        if (j < 32) first[j + e] += (z0 - other.at[e]) * (z0 - other.at[e]);
        if (HAS_SECOND) second[j + e] += (z1 - other.at[e]) * (z1 - other.at[e]);
      }
    }
  }

  // Bandwidth and weights, as LocalSystem::weigh.
  void weigh(int i0, int i1) {
    const int index[2] = {i0, HAS_SECOND ? i1 : -1};
    T reach = 0;
    bool is_bad = false;
#pragma unroll
    for (int s = 0; s < 2; s++) {
      is_bad |= !(r2[s] - r2[s] == T(0));
      if (index[s] >= 0 && r2[s] > reach) reach = r2[s];
    }
    not_finite = __any_sync(ALL_LANES, is_bad);
    h2 = reduce_lanes(reach, Largest{});
    // Of several as far, the first.
    unsigned as_far[2];
#pragma unroll
    for (int s = 0; s < 2; s++)
      as_far[s] = __ballot_sync(ALL_LANES, index[s] >= 0 && r2[s] == h2 && h2 > 0);
    farthest = as_far[0] ? __ffs(as_far[0]) - 1 : as_far[1] ? 31 + __ffs(as_far[1]) : 0;
    if (problem.bandwidth > 0) h2 = T(problem.bandwidth * problem.bandwidth);
    T counted = 0, sum = 0, count = 0, noise[2];
    unsigned in_lanes[2];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const T weight = weight_of(s).value;
      const bool in = weight > L::SMALLEST_WEIGHT && index[s] >= 0;
      present[s] = in ? T(1) : T(0);
      in_lanes[s] = __ballot_sync(ALL_LANES, in);
      y[s] = in ? problem.y[index[s]] : T(0);
      noise[s] = in ? T(problem.noise_variance) * problem.noise[index[s]] / weight : T(0);
      if (in) counted += weight < T(1) ? weight : T(1), sum += r2[s], count += T(1);
    }
    n_effective = reduce_lanes(counted, Sum{});
    sum = reduce_lanes(sum, Sum{});
    count = reduce_lanes(count, Sum{});
    trend = T(problem.constant_variance) +
            T(problem.slope_variance) * sum / (count > T(1) ? count : T(1));
    mean_diagonal = T(1) + trend;
    extra[0] = in_lanes[0] >> lane & 1 ? noise[0] : mean_diagonal;
    extra[1] = in_lanes[1] >> lane & 1 ? noise[1] : mean_diagonal;
    const int last = in_lanes[1] ? 64 - __clz(in_lanes[1]) : 32 - __clz(in_lanes[0]);
    rows = last > 1 ? last : 1;
    __syncwarp();
    memory.r2[lane] = r2[0];
    if (HAS_SECOND) memory.r2[lane + 32] = r2[1];
    __syncwarp();
    correlate();
    // Neighbors are ordered, so those without weight are the last ones, whose columns nobody
    // reads. If not so, columns of points that are out of the system are zero.
    const unsigned long long all = (unsigned long long)in_lanes[1] << 32 | in_lanes[0];
    if (all & (all + 1)) drop_columns(in_lanes);
  }

  // The weight of the lane's row s, were it a neighbor, with derivatives.
  Weight<T> weight_of(int s) const {
    const T factor =
        problem.normalize ? T(1) / (sqrt(h2 > 0 ? h2 : T(1)) * T(problem.mean_lengthscale)) : T(1);
    const T u2 = h2 > 0 ? r2[s] / h2 : T(0);
    const Weight<T> w = localize(problem.localizer, u2, T(problem.localizer_decay));
    return {(h2 > 0 ? w.value : T(1)) * factor, w.by_s * factor, w.by_decay * factor};
  }

  // [E1] in place of the squared distances. Rows of points out of the system are zero.
  void correlate() {
    const T c = T(problem.constant_variance), half_b = T(0.5 * problem.slope_variance);
    const T b0 = half_b * present[0], b1 = half_b * present[1];
    const T base0 = present[0] * c + b0 * r2[0], base1 = present[1] * c + b1 * r2[1];
    with_kernel(problem.kernel, [&](auto kernel) {
      typedef decltype(kernel) K;
#pragma unroll
      for (int j = 0; j < M; j += 4) {
        const Four<T> other = load_four(memory.r2 + j);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (j < 32) {
            const T pair = first[j + e];
            first[j + e] = K::at(pair).value * present[0] + ((b0 * other.at[e] + base0) - b0 * pair);
          }
          if (HAS_SECOND) {
            const T pair = second[j + e];
            second[j + e] = K::at(pair).value * present[1] + ((b1 * other.at[e] + base1) - b1 * pair);
          }
        }
      }
#pragma unroll
      for (int s = 0; s < 2; s++) k[s] = present[s] * (K::at(r2[s]).value + c);
    });
  }
  void drop_columns(const unsigned (&in_lanes)[2]) {
#pragma unroll
    for (int j = 0; j < M; j++) {
      const bool is_in = in_lanes[j / 32] >> (j % 32) & 1;
      // On the diagonal stays what `extra` is added to: 0 of a point that is out.
      if (j < 32) first[j] = is_in ? first[j] : T(0);
      if (HAS_SECOND) second[j] = is_in ? second[j] : T(0);
    }
  }

  // [E3]
  void factor() {
    failed = false;
    least = mean_diagonal;
    yy = yk = kk = 0;
    if (KEEPS) of_y_kept[0] = of_y_kept[1] = of_k_kept[0] = of_k_kept[1] = 0;
#pragma unroll
    for (int p = 0; p < N_PANELS; p++) {
      if (p * PANEL_WIDTH >= rows) break;
      panel(p);
    }
  }
  // What the lanes that own the rows of a panel have before it, for all lanes.
  const T *share_rows(const int p) {
    const int j = p * PANEL_WIDTH, owner = j % 32;
    T *row = memory.panel + (p % 2) * PANEL_WIDTH * M;
    if (lane >= owner && lane < owner + PANEL_WIDTH) {
      T *own = row + (lane - owner) * M;
#pragma unroll
      for (int c = 0; c < j; c += 4) {
        Four<T> part;
#pragma unroll
        for (int e = 0; e < 4; e++)
          part.at[e] = j < 32 ? first[(c + e) % 32] : second[(c + e) % N_SECOND];
        *reinterpret_cast<Four<T> *>(own + c) = part;
      }
    }
    __syncwarp();
    return row;
  }
  void panel(const int p) {
    constexpr int W = PANEL_WIDTH;
    const int j = p * W, owner = j % 32;
    const bool in_first = j < 32;
    const T *row = share_rows(p);
    T x0[W], x1[W];
#pragma unroll
    for (int b = 0; b < W; b++) {
      x0[b] = in_first ? first[(j + b) % 32] : T(0);
      x1[b] = HAS_SECOND ? second[(j + b) % N_SECOND] : T(0);
    }
#pragma unroll
    for (int c = 0; c < j; c += 4) {
#pragma unroll
      for (int b = 0; b < W; b++) {
        const Four<T> part = load_four(row + b * M + c);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (in_first) x0[b] -= first[(c + e) % 32] * part.at[e];
          if (HAS_SECOND) x1[b] -= second[(c + e) % N_SECOND] * part.at[e];
        }
      }
    }
    // The diagonal block, in every lane; its diagonal keeps 1/L.
    T D[W * W];
    const T more = in_first ? extra[0] : extra[1];
#pragma unroll
    for (int b = 0; b < W; b++)
#pragma unroll
      for (int a = b; a < W; a++) {
        T value = in_first ? x0[b] : x1[b];
        if (a == b) value += more;
        D[b * W + a] = from_lane(value, owner + a);
      }
    factor_block(D);
    const T y_own = in_first ? y[0] : y[1], k_own = in_first ? k[0] : k[1];
    T of_y[W], of_k[W];
#pragma unroll
    for (int a = 0; a < W; a++) {
      T v = from_lane(y_own, owner + a), w = from_lane(k_own, owner + a);
#pragma unroll
      for (int b = 0; b < a; b++) v -= D[b * W + a] * of_y[b], w -= D[b * W + a] * of_k[b];
      of_y[a] = v * D[a * W + a], of_k[a] = w * D[a * W + a];
      if (KEEPS && lane == owner + a) {
        inverse[in_first ? 0 : 1] = D[a * W + a];
        of_y_kept[in_first ? 0 : 1] = of_y[a], of_k_kept[in_first ? 0 : 1] = of_k[a];
      }
      yy += of_y[a] * of_y[a];
      yk += of_y[a] * of_k[a];
      kk += of_k[a] * of_k[a];
    }
#pragma unroll
    for (int b = 0; b < W; b++) {
#pragma unroll
      for (int c = 0; c < b; c++) {
        if (in_first) x0[b] -= x0[c] * D[c * W + b];
        if (HAS_SECOND) x1[b] -= x1[c] * D[c * W + b];
      }
      x0[b] *= D[b * W + b], x1[b] *= D[b * W + b];
      if (in_first) {
        first[(j + b) % 32] = x0[b];
        y[0] -= x0[b] * of_y[b], k[0] -= x0[b] * of_k[b];
      }
      if (HAS_SECOND) {
        second[(j + b) % N_SECOND] = x1[b];
        y[1] -= x1[b] * of_y[b], k[1] -= x1[b] * of_k[b];
      }
    }
  }
  void factor_block(T *D) {
    constexpr int W = PANEL_WIDTH;
    const T smallest = mean_diagonal * L::SMALLEST_PIVOT;
#pragma unroll
    for (int b = 0; b < W; b++) {
      T pivot = D[b * W + b];
#pragma unroll
      for (int c = 0; c < b; c++) pivot -= D[c * W + b] * D[c * W + b];
      const bool good = pivot > smallest && pivot - pivot == T(0);
      failed = failed || !good;
      least = good && pivot < least ? pivot : least;
      const T inverse = inverse_sqrt(good ? pivot : T(1));
      D[b * W + b] = inverse;
#pragma unroll
      for (int a = b + 1; a < W; a++) {
        T value = D[b * W + a];
#pragma unroll
        for (int c = 0; c < b; c++) value -= D[c * W + a] * D[c * W + b];
        D[b * W + a] = value * inverse;
      }
    }
  }

  int status() const {
    const T prior = T(1 + problem.constant_variance);
    bool imprecise = (failed && !not_finite) || trend > T(LARGEST_TREND_IN_MATRIX);
    if (L::IS_SINGLE)
      imprecise |= not_finite || least < L::PRECISE_PIVOT * mean_diagonal ||
                   !(prior - kk > L::PRECISE_VARIANCE * prior);
    return imprecise ? STATUS_IMPRECISE : not_finite ? STATUS_NOT_FINITE : STATUS_OK;
  }
  T latent_variance() const {  // [E5]
    const T prior = T(1 + problem.constant_variance);
    const T variance = prior - kk, floor = L::SMALLEST_VARIANCE * prior;
    return variance > floor ? variance : floor;
  }
};

}  // namespace lsgp
