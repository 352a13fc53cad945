// SPDX-License-Identifier: BSD-3-Clause
// Small systems, one warp per query, the matrix in registers; M is 32 or 64. One target, the trend in
// the matrix. What fails or has lost its digits gets STATUS_IMPRECISE, and is solved again by the
// general kernel.
//
// Of 32 rows, lane l has row l. Of 64, it has a low row l and a high row 63 - l, whose lower
// triangles together are 65 entries in every lane: the columns 0 to 31 of the high row are `wide`,
// its diagonal is `corner`, and slot j of `mixed` is column j of the low row where that is not above
// the diagonal (l >= j), else column 63 - j of the high one. So a third fewer registers and
// evaluations are needed than for whole rows. What a lane computes of an entry that it does not
// have is never read. Reading shared memory is what takes longest: each number that is read there
// serves both rows where it can.
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

// KEEPS: whether what backward substitution needs is kept.
template <class T, int M, bool KEEPS = false> struct WarpSystem {
  typedef Limits<T> L;
  static constexpr bool HAS_LOW = M > 32;
  static constexpr int N_MIXED = HAS_LOW ? 32 : 1, PANEL_WIDTH = 4;
  static constexpr int N_PANELS = M / PANEL_WIDTH;
  static constexpr int HIGH = 0, LOW = 1;  // of what there is for either row of a lane

  const Problem<T> &problem;
  WarpMemory<T, M> &memory;
  const int lane;
  T wide[32], mixed[N_MIXED], corner;
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

  // The rows of a lane, and the lane of a row.
  static int high_row(int lane) { return HAS_LOW ? 63 - lane : lane; }
  static int lane_of(int row) { return HAS_LOW && row >= 32 ? 63 - row : row; }
  bool is_low(int slot) const { return lane >= slot; }
  // Entry (row, column) of the row that the lane has of those before 32, or behind.
  T &entry(bool of_low, int column) {
    if (of_low) return mixed[column % N_MIXED];
    return column < 32 ? wide[column % 32] : mixed[(63 - column) % N_MIXED];
  }

  // Squared distances between the neighbors, and to the query.
  void measure(const T *query, int i_high, int i_low) {
    typedef WarpMemory<T, M> Memory;
    const int d = problem.d;
#pragma unroll
    for (int j = 0; j < 32; j++) wide[j] = 0;
#pragma unroll
    for (int j = 0; j < N_MIXED; j++) mixed[j] = 0;
    r2[HIGH] = r2[LOW] = 0;
    for (int k0 = 0; k0 < d; k0 += Memory::CHUNK) {
      place_chunk(query, i_high, i_low, k0);
      const int n = d - k0 < Memory::CHUNK ? d - k0 : Memory::CHUNK;
#pragma unroll
      for (int j = 0; j < 32; j += GROUP) add_squares(j, n);
    }
  }
  // Scaled differences to the query, of some inputs; where rows are aligned, four at a time.
  void place_chunk(const T *query, int i_high, int i_low, int k0) {
    if (problem.d % 4 == 0) place_inputs<4>(query, i_high, i_low, k0);
    else place_inputs<1>(query, i_high, i_low, k0);
  }
  template <int N> void place_inputs(const T *query, int i_high, int i_low, int k0) {
    typedef WarpMemory<T, M> Memory;
    const int d = problem.d, n = d - k0 < Memory::CHUNK ? d - k0 : Memory::CHUNK;
    const T *high = i_high < 0 ? query : problem.X + (long long)i_high * d;
    const T *low = i_low < 0 ? query : problem.X + (long long)i_low * d;
    __syncwarp();
    for (int c = 0; c < n; c += N) {
      place(query, k0, c, load_several<N>(high + k0 + c), high_row(lane));
      if (HAS_LOW) place(query, k0, c, load_several<N>(low + k0 + c), lane);
    }
    __syncwarp();
  }
  template <int N> void place(const T *query, int k0, int c, Several<T, N> x, int row) {
#pragma unroll
    for (int e = 0; e < N; e++)
      memory.z[(c + e) * WarpMemory<T, M>::STRIDE + row] =
          (x.at[e] - query[k0 + c + e]) * problem.inverse_lengthscale[k0 + c + e];
  }
  // Of n inputs, to the columns and slots from j on. Both rows of a slot, of which one is chosen at
  // the end: cheaper than choosing for every input.
  static constexpr int GROUP = sizeof(T) == 4 ? 16 : 8;  // as many as there are registers for
  void add_squares(const int j, int n) {
    T of_low[GROUP], of_high[GROUP];
#pragma unroll
    for (int e = 0; e < GROUP; e++) of_low[e] = of_high[e] = 0;
#pragma unroll 1
    for (int c = 0; c < n; c++) {
      const T *z = memory.z + c * WarpMemory<T, M>::STRIDE;
      const T high = z[high_row(lane)], low = HAS_LOW ? z[lane] : T(0);
      if (j == 0) r2[HIGH] += high * high, r2[LOW] += low * low;
#pragma unroll
      for (int e = 0; e < GROUP; e += 4) {
        const Four<T> up = load_four(z + j + e);
#pragma unroll
        for (int f = 0; f < 4; f++) {
          const T gap = high - up.at[f], left = low - up.at[f];
          wide[j + e + f] += gap * gap;
          if (HAS_LOW) of_low[e + f] += left * left;
        }
        if (!HAS_LOW) continue;
        const Four<T> down = load_four(z + 60 - j - e);
#pragma unroll
        for (int f = 0; f < 4; f++) {
          const T right = high - down.at[3 - f];
          of_high[e + f] += right * right;
        }
      }
    }
#pragma unroll
    for (int e = 0; HAS_LOW && e < GROUP; e++)
      mixed[(j + e) % N_MIXED] += is_low(j + e) ? of_low[e] : of_high[e];
  }

  // Bits of the rows for which it is true, of either half.
  void ballot_rows(const bool (&is_true)[2], unsigned (&rows)[2]) const {
    const unsigned high = __ballot_sync(ALL_LANES, is_true[HIGH]);
    rows[0] = HAS_LOW ? __ballot_sync(ALL_LANES, is_true[LOW]) : high;
    rows[1] = HAS_LOW ? __brev(high) : 0;
  }

  // Bandwidth and weights, as LocalSystem::weigh.
  void weigh(int i_high, int i_low) {
    const int index[2] = {i_high, HAS_LOW ? i_low : -1};
    T reach = 0;
    bool is_bad = false, is_far[2], is_in[2];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      is_bad |= !(r2[s] - r2[s] == T(0));
      if (index[s] >= 0 && r2[s] > reach) reach = r2[s];
    }
    not_finite = __any_sync(ALL_LANES, is_bad);
    h2 = reduce_lanes(reach, Largest{});
    // Of several as far, the first.
    unsigned as_far[2], in_rows[2];
#pragma unroll
    for (int s = 0; s < 2; s++) is_far[s] = index[s] >= 0 && r2[s] == h2 && h2 > 0;
    ballot_rows(is_far, as_far);
    farthest = as_far[0] ? __ffs(as_far[0]) - 1 : as_far[1] ? 31 + __ffs(as_far[1]) : 0;
    if (problem.bandwidth > 0) h2 = T(problem.bandwidth * problem.bandwidth);
    const T unit = problem.weight_unit(h2);
    T counted = 0, sum = 0, count = 0, noise[2];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      const T weight = problem.weight_of(r2[s], h2, unit).value;
      const bool in = weight > L::SMALLEST_WEIGHT && index[s] >= 0;
      is_in[s] = in;
      present[s] = in ? T(1) : T(0);
      y[s] = in ? problem.y[index[s]] : T(0);
      noise[s] = in ? T(problem.noise_variance) * problem.noise[index[s]] / weight : T(0);
      if (in) counted += weight < T(1) ? weight : T(1), sum += r2[s], count += T(1);
    }
    ballot_rows(is_in, in_rows);
    n_effective = reduce_lanes(counted, Sum{});
    sum = reduce_lanes(sum, Sum{});
    count = reduce_lanes(count, Sum{});
    trend = T(problem.constant_variance) +
            T(problem.slope_variance) * sum / (count > T(1) ? count : T(1));
    mean_diagonal = T(1) + trend;
#pragma unroll
    for (int s = 0; s < 2; s++) extra[s] = is_in[s] ? noise[s] : mean_diagonal;
    const int last = in_rows[1] ? 64 - __clz(in_rows[1]) : 32 - __clz(in_rows[0]);
    rows = last > 1 ? last : 1;
    __syncwarp();
    memory.r2[high_row(lane)] = r2[HIGH];
    if (HAS_LOW) memory.r2[lane] = r2[LOW];
    __syncwarp();
    correlate();
    // Neighbors are ordered, so those without weight are the last ones, whose columns nobody
    // reads. If not so, columns of points that are out of the system are zero.
    const unsigned long long all = (unsigned long long)in_rows[1] << 32 | in_rows[0];
    if (all & (all + 1)) drop_columns(in_rows);
  }

  // [E1] in place of the squared distances. Rows of points out of the system are zero.
  void correlate() {
    const T c = T(problem.constant_variance), half_b = T(0.5 * problem.slope_variance);
    T b[2], base[2];
#pragma unroll
    for (int s = 0; s < 2; s++) {
      b[s] = half_b * present[s];
      base[s] = present[s] * c + b[s] * r2[s];
    }
    with_kernel(problem.kernel, [&](auto kernel) {
      typedef decltype(kernel) K;
#pragma unroll
      for (int j = 0; j < 32; j += 4) {
        const Four<T> up = load_four(memory.r2 + j), down = load_four(memory.r2 + (M - 4 - j));
#pragma unroll
        for (int e = 0; e < 4; e++) {
          T pair = wide[j + e];
          wide[j + e] = K::at(pair).value * present[HIGH] +
                        ((b[HIGH] * up.at[e] + base[HIGH]) - b[HIGH] * pair);
          if (!HAS_LOW) continue;
          const bool low = is_low(j + e);
          const T own = low ? b[LOW] : b[HIGH], other = low ? up.at[e] : down.at[3 - e];
          T &slot = mixed[(j + e) % N_MIXED];
          pair = slot;
          slot = K::at(pair).value * (low ? present[LOW] : present[HIGH]) +
                 ((own * other + (low ? base[LOW] : base[HIGH])) - own * pair);
        }
      }
#pragma unroll
      for (int s = 0; s < 2; s++) k[s] = present[s] * (K::at(r2[s]).value + c);
    });
    corner = present[HIGH] + (b[HIGH] * r2[HIGH] + base[HIGH]);
  }
  void drop_columns(const unsigned (&in_rows)[2]) {
    // On the diagonal stays what `extra` is added to: 0 of a point that is out.
#pragma unroll
    for (int j = 0; j < 32; j++) wide[j] = in_rows[0] >> j & 1 ? wide[j] : T(0);
#pragma unroll
    for (int j = 0; HAS_LOW && j < N_MIXED; j++) {
      const int column = is_low(j) ? j : 63 - j;
      mixed[j] = in_rows[column / 32] >> (column % 32) & 1 ? mixed[j] : T(0);
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
  // Which of a lane's rows the rows of a panel are, and the lane that has one of them.
  static bool is_low_panel(int p) { return HAS_LOW && p * PANEL_WIDTH < 32; }
  static int owner_of(int p, int a) { return lane_of(p * PANEL_WIDTH + a); }

  // What the lanes that own the rows of a panel have before it, for all lanes.
  const T *share_rows(const int p) {
    const int j = p * PANEL_WIDTH, first = owner_of(p, 0), last = owner_of(p, PANEL_WIDTH - 1);
    const int place = first < last ? lane - first : first - lane;
    T *row = memory.panel + (p % 2) * PANEL_WIDTH * M;
    if (place >= 0 && place < PANEL_WIDTH) {
      T *own = row + place * M;
#pragma unroll
      for (int c = 0; c < j; c += 4) {
        Four<T> part;
#pragma unroll
        for (int e = 0; e < 4; e++) part.at[e] = entry(is_low_panel(p), c + e);
        *reinterpret_cast<Four<T> *>(own + c) = part;
      }
    }
    __syncwarp();
    return row;
  }
  void panel(const int p) {
    constexpr int W = PANEL_WIDTH;
    const int j = p * W;
    const bool in_low = is_low_panel(p);
    const int s = in_low ? LOW : HIGH;
    const T *row = share_rows(p);
    T low[W], high[W];
#pragma unroll
    for (int b = 0; b < W; b++) {
      low[b] = in_low ? entry(true, j + b) : T(0);
      high[b] = entry(false, j + b);
      if (HAS_LOW && !in_low && lane == owner_of(p, b)) high[b] = corner;
    }
#pragma unroll
    for (int c = 0; c < j; c += 4) {
#pragma unroll
      for (int b = 0; b < W; b++) {
        const Four<T> part = load_four(row + b * M + c);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          if (in_low) low[b] -= entry(true, c + e) * part.at[e];
          high[b] -= entry(false, c + e) * part.at[e];
        }
      }
    }
    // The diagonal block, in every lane; its diagonal keeps 1/L.
    T D[W * W];
#pragma unroll
    for (int b = 0; b < W; b++)
#pragma unroll
      for (int a = b; a < W; a++) {
        T value = in_low ? low[b] : high[b];
        if (a == b) value += extra[s];
        D[b * W + a] = from_lane(value, owner_of(p, a));
      }
    factor_tile(D, mean_diagonal * L::SMALLEST_PIVOT, failed, least);
    T of_y[W], of_k[W];
#pragma unroll
    for (int a = 0; a < W; a++)
      of_y[a] = from_lane(y[s], owner_of(p, a)), of_k[a] = from_lane(k[s], owner_of(p, a));
    solve_row(of_y, D);
    solve_row(of_k, D);
#pragma unroll
    for (int a = 0; a < W; a++) {
      if (KEEPS && lane == owner_of(p, a)) {
        inverse[s] = D[a * W + a];
        of_y_kept[s] = of_y[a], of_k_kept[s] = of_k[a];
      }
      yy += of_y[a] * of_y[a];
      yk += of_y[a] * of_k[a];
      kk += of_k[a] * of_k[a];
    }
    if (in_low) solve_row(low, D);
    solve_row(high, D);
#pragma unroll
    for (int b = 0; b < W; b++) {
      if (in_low) {
        // Where the slot is the high row's, it stays so.
        entry(true, j + b) = is_low(j + b) ? low[b] : entry(true, j + b);
        y[LOW] -= low[b] * of_y[b], k[LOW] -= low[b] * of_k[b];
      }
      const bool is_slot = HAS_LOW && j >= 32;
      entry(false, j + b) = is_slot && is_low(63 - j - b) ? entry(false, j + b) : high[b];
      y[HIGH] -= high[b] * of_y[b], k[HIGH] -= high[b] * of_k[b];
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

// What the kernels of warps begin with: a query for each, and its neighbors.
#define LSGP_WARP_SYSTEM(System)                                                                  \
  __shared__ __align__(16) lsgp::WarpMemory<T, LSGP_M> memory[LSGP_THREADS / 32];                 \
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;                                     \
  const long long q = (long long)blockIdx.x * (LSGP_THREADS / 32) + warp;                         \
  if (q >= n_queries) return;                                                                     \
  const lsgp::Problem<T> problem = LSGP_PROBLEM(T);                                               \
  const int *own = neighbors + q * m;                                                             \
  const int high = System::high_row(lane);                                                        \
  const int i_high = high < m ? own[high] : -1, i_low = lane < m ? own[lane] : -1;                \
  System system(problem, memory[warp], lane)
