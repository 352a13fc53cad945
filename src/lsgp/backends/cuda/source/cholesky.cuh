// SPDX-License-Identifier: BSD-3-Clause
// Cholesky factor of one matrix by the threads of a block, panel by panel, in the layout of
// _core/cholesky.h: the lower triangle by tiles of 4 x 4, one after another in each tile row,
// right-hand sides as tile rows below it. In shared memory there are 4 numbers to spare between tiles,
// so that 8 tiles that are one after another, or one below another, lie in different banks.
#pragma once

namespace lsgp {

constexpr int TILE_STRIDE = LSGP_MATRIX_SHARED ? 20 : 16;

// Numbers of elements: shared memory has few.
#if LSGP_MATRIX_SHARED
typedef int Place;
#else
typedef long long Place;
#endif

template <class T> struct Triangle {
  T *data;
  int n_tiles;      // tile rows of the matrix
  int n_rhs_tiles;  // tile rows of right-hand sides below it
  int most_tiles;   // tile rows of the matrix that there is room for, before the right-hand sides

  // Right-hand sides do not follow the last row in use but all that there is room for: with it, the
  // compiler of CUDA finds more use for registers, and large systems are solved faster.
  T *row(int I) const {
    const Place most = most_tiles, above = I < n_tiles
        ? Place(I) * (I + 1) / 2
        : most * (most + 1) / 2 + (I - n_tiles) * most;
    return data + TILE_STRIDE * above;
  }
  T *tile(int I, int J) const { return row(I) + TILE_STRIDE * J; }
  // Column k of a tile row begins here.
  static int column(int k) { return k / TILE * TILE_STRIDE + k % TILE * TILE; }
};

// The tiles (I, J), J <= I, of the tile rows from `first_row` to behind `last_row`, columns from
// `first` to behind `n_columns`: one of them each `step`, as this thread's share.
struct TileWalk {
  int first, last_row, n_columns, step, I, J;

  TileWalk(int first, int first_row, int last_row, int n_columns, int start, int step)
      : first(first), last_row(last_row), n_columns(n_columns), step(step), I(first_row), J(first) {
    advance(start);
  }
  bool is_there() const { return I < last_row; }
  void next() { advance(step); }

 private:
  void advance(int n) {
    J += n;
    for (; I < last_row; I++) {
      const int behind = I + 1 < n_columns ? I + 1 : n_columns;
      if (J < behind) return;
      J -= behind - first;
    }
  }
};

// All tiles of a triangle, shared by all threads: tile number t is in row (sqrt(8 t + 1) - 1) / 2.
struct TriangleWalk {
  int n_tiles, number, I, J;

  explicit TriangleWalk(int n_tiles) : n_tiles(n_tiles), number(rank()) { find(); }
  bool is_there() const { return I < n_tiles; }
  void next() {
    number += n_threads();
    find();
  }

 private:
  void find() {
    I = int((sqrt(float(8 * number + 1)) - 1.f) * 0.5f);
    J = number - I * (I + 1) / 2;
    if (J < 0) J += I--;
    else if (J > I) J -= ++I;
  }
};

// The first N columns of a tile.
template <int N = TILE, class T> inline void load_tile(T *c, const T *tile) {
#pragma unroll
  for (int b = 0; b < N; b++) {
    const Four<T> column = load_four(tile + b * TILE);
#pragma unroll
    for (int a = 0; a < TILE; a++) c[b * TILE + a] = column.at[a];
  }
}

template <int N = TILE, class T> inline void store_tile(T *tile, const T *c) {
#pragma unroll
  for (int b = 0; b < N; b++) {
    Four<T> column;
#pragma unroll
    for (int a = 0; a < TILE; a++) column.at[a] = c[b * TILE + a];
    *reinterpret_cast<Four<T> *>(tile + b * TILE) = column;
  }
}

// c -= x yᵀ over one tile each, of the first N columns.
template <int N = TILE, class T> inline void subtract_product(T *c, const T *x, const T *y) {
#pragma unroll
  for (int k = 0; k < TILE; k++) {
    const Four<T> left = load_four(x + k * TILE);
    const Several<T, N> right = load_several<N>(y + k * TILE);
#pragma unroll
    for (int b = 0; b < N; b++)
#pragma unroll
      for (int a = 0; a < TILE; a++) c[b * TILE + a] -= left.at[a] * right.at[b];
  }
}

constexpr int PANEL = 4;  // tile columns
// Tiles for each thread from which on four of them are updated at a time, if there are registers for
// it: where only one block fits a multiprocessor and no gradient is asked for (LSGP_ALONE) they are
// there.
constexpr int MANY_TILES = 2;

// The diagonal block of a panel, by one warp. All other warps wait for it, so what counts is how
// many operations wait for each other: lane l has row l of the block in registers (and so has lane
// l + 16), lanes exchange what they need, and all factor the same diagonal tile.
template <class T>
inline void factor_block(const Triangle<T> &A, int begin, int end, T smallest, bool &failed,
                         T &least) {
  constexpr int WIDTH = PANEL * TILE;
  const int lane = rank() % WIDTH, n_rows = (end - begin) * TILE, last = lane / TILE;
  T *row = A.tile(begin + (lane < n_rows ? last : 0), begin) + lane % TILE;
  T own[WIDTH];
#pragma unroll
  for (int c = 0; c < WIDTH; c++)
    own[c] = c / TILE <= last && lane < n_rows ? row[Triangle<T>::column(c)] : T(0);
#pragma unroll
  for (int n = 0; n < PANEL; n++) {
    if (begin + n >= end) break;
    T D[TILE_SIZE];
#pragma unroll
    for (int b = 0; b < TILE; b++)
#pragma unroll
      for (int a = b; a < TILE; a++) D[b * TILE + a] = from_lane(own[n * TILE + b], n * TILE + a);
    factor_tile(D, smallest, failed, least);
    T *x = own + n * TILE;
    solve_row(x, D);
    // The rows of the tile itself: their diagonal keeps 1/L.
#pragma unroll
    for (int b = 0; b < TILE; b++)
      if (lane == n * TILE + b) x[b] = D[b * TILE + b];
#pragma unroll
    for (int c = (n + 1) * TILE; c < WIDTH; c++)
#pragma unroll
      for (int b = 0; b < TILE; b++) own[c] -= x[b] * from_lane(x[b], c);
  }
  __syncwarp();  // both lanes of a row have read it
  if (rank() >= WIDTH || lane >= n_rows) return;
#pragma unroll
  for (int c = 0; c < WIDTH; c++)
    if (c <= lane) row[Triangle<T>::column(c)] = own[c];
}

// The rows below the diagonal block of a panel, each thread some of them.
template <class T> inline void solve_rows(const Triangle<T> &A, int begin, int end) {
  const int n_rows = (A.n_tiles + A.n_rhs_tiles) * TILE;
  for (int r = end * TILE + rank(); r < n_rows; r += n_threads()) {
    T *own = A.tile(r / TILE, begin) + r % TILE, x[PANEL * TILE];
    // All is read before anything is written, so that no read waits for a write.
#pragma unroll
    for (int k = 0; k < PANEL * TILE; k++)
      if (begin + k / TILE < end) x[k] = own[Triangle<T>::column(k)];
#pragma unroll
    for (int n = 0; n < PANEL; n++) {
      if (begin + n >= end) break;
      T c[TILE_SIZE];
      const T *left = A.tile(begin + n, begin);
#pragma unroll
      for (int k = 0; k < n * TILE; k++) {
        const Four<T> other = load_four(left + k / TILE * TILE_STRIDE + k % TILE * TILE);
#pragma unroll
        for (int b = 0; b < TILE; b++) x[n * TILE + b] -= x[k] * other.at[b];
      }
      load_tile(c, left + n * TILE_STRIDE);
      solve_row(x + n * TILE, c);
    }
#pragma unroll
    for (int k = 0; k < PANEL * TILE; k++)
      if (begin + k / TILE < end) own[Triangle<T>::column(k)] = x[k];
  }
}

// Products in a row of the loops over a panel, in `update_tiles` and in `update_block`: from shared
// memory two are faster than all four and than one, from the device's four.
constexpr int IN_A_ROW = LSGP_MATRIX_SHARED ? 2 : PANEL;

// What a panel of full width, from tile column `begin` on, subtracts from the tiles of a walk.
template <class T> inline void update_tiles(const Triangle<T> &A, int begin, TileWalk at) {
  for (; at.is_there(); at.next()) {
    T c[TILE_SIZE];
    T *tile = A.tile(at.I, at.J);
    const T *x = A.tile(at.I, begin), *y = A.tile(at.J, begin);
    load_tile(c, tile);
#pragma unroll IN_A_ROW
    for (int s = 0; s < PANEL; s++) subtract_product(c, x + s * TILE_STRIDE, y + s * TILE_STRIDE);
    store_tile(tile, c);
  }
}

// As `update_tiles`, of the lower triangle of the tile rows from `end` to `next`, by one warp that
// others wait for: each lane has half of a tile.
template <class T> inline void update_diagonal(const Triangle<T> &A, int begin, int end, int next) {
  constexpr int HALF = TILE / 2;
  const int lane = rank() % WARP, right = lane % 2 * HALF;
  for (TileWalk at(end, end, next, next, lane / 2, WARP / 2); at.is_there(); at.next()) {
    T c[TILE * HALF];
    T *tile = A.tile(at.I, at.J) + right * TILE;
    const T *x = A.tile(at.I, begin), *y = A.tile(at.J, begin) + right;
    load_tile<HALF>(c, tile);
#pragma unroll
    for (int s = 0; s < PANEL; s++)
      subtract_product<HALF>(c, x + s * TILE_STRIDE, y + s * TILE_STRIDE);
    store_tile<HALF>(tile, c);
  }
}

// c -= x yᵀ over one tile each, of two tile rows and two tile columns.
template <class T>
inline void subtract_products(T (&c)[4][TILE_SIZE], const T *x0, const T *x1, const T *y0,
                              const T *y1) {
#pragma unroll
  for (int k = 0; k < TILE; k++) {
    const Four<T> upper = load_four(x0 + k * TILE), lower = load_four(x1 + k * TILE),
                  left = load_four(y0 + k * TILE), right = load_four(y1 + k * TILE);
#pragma unroll
    for (int b = 0; b < TILE; b++)
#pragma unroll
      for (int a = 0; a < TILE; a++) {
        c[0][b * TILE + a] -= upper.at[a] * left.at[b];
        c[1][b * TILE + a] -= lower.at[a] * left.at[b];
        c[2][b * TILE + a] -= upper.at[a] * right.at[b];
        c[3][b * TILE + a] -= lower.at[a] * right.at[b];
      }
  }
}

// As `update_tiles`, of the 2 x 2 tiles from (I, J) on, as far as they are there: half of the reads.
template <class T> inline void update_block(const Triangle<T> &A, int begin, int I, int J) {
  const int n = A.n_tiles, n_rows = n + A.n_rhs_tiles;
  const bool has_lower = I + 1 < n_rows, has_right = J + 1 < n;
  const T *x = A.row(I), *lower = has_lower ? A.row(I + 1) : x, *y = A.row(J),
          *right = has_right ? A.row(J + 1) : y;
  T *tiles[4] = {A.tile(I, J), A.tile(I + 1, J), A.tile(I, J + 1), A.tile(I + 1, J + 1)};
  const bool is_there[4] = {true, has_lower, has_right && J < I, has_lower && has_right};
  T c[4][TILE_SIZE];
#pragma unroll
  for (int e = 0; e < 4; e++)
    if (is_there[e]) load_tile(c[e], tiles[e]);
#pragma unroll IN_A_ROW
  for (int s = 0; s < PANEL; s++) {
    const int at = (begin + s) * TILE_STRIDE;
    subtract_products(c, x + at, lower + at, y + at, right + at);
  }
#pragma unroll
  for (int e = 0; e < 4; e++)
    if (is_there[e]) store_tile(tiles[e], c[e]);
}

// As `update_tiles`, of the tile rows from `first_row` on and the columns from `first` on, by blocks of
// 2 x 2 tiles: down the columns, where blocks one below another lie in different banks.
template <class T>
inline void update_blocks(const Triangle<T> &A, int begin, int first, int first_row, int start,
                          int step) {
  const int n_rows = A.n_tiles + A.n_rhs_tiles;
  int J = first, top = first_row;
#pragma unroll 1
  for (int offset = 2 * start;; offset += 2 * step) {  // rows behind the first of the columns
    while (J < A.n_tiles && top + offset >= n_rows) {
      offset -= (n_rows - top + 1) / 2 * 2;
      J += 2;
      top = J > first_row ? J : first_row;
    }
    if (J >= A.n_tiles) return;
    update_block(A, begin, top + offset, J);
  }
}

// What a panel subtracts from the tiles of rows from `first_row` on, by all threads but the first
// `others`.
template <class T>
inline void update_behind(const Triangle<T> &A, int begin, int end, int first_row, int others) {
  const int n = A.n_tiles, n_rows = n + A.n_rhs_tiles, left = n - end;
  const int start = rank() - others, step = n_threads() - others;
  if (LSGP_ALONE && left * (left + 1) / 2 > MANY_TILES * step)
    update_blocks(A, begin, end, first_row, start, step);
  else
    update_tiles(A, begin, TileWalk(end, first_row, n_rows, n, start, step));
}

template <class T> struct Pivots {
  T least;
  bool failed;
};

// [E3] Factor in place, right-hand sides included. While the other warps update what is behind a
// panel, the first one is ahead of them: it factors the diagonal block of the next.
template <class T> void factor(const Triangle<T> &A, T smallest, bool &failed, T &least) {
  const int n = A.n_tiles, width = WARP;
  const bool is_ahead = rank() < width, is_alone = n_threads() == width;
  if (is_ahead) factor_block(A, 0, PANEL < n ? PANEL : n, smallest, failed, least);
  for (int begin = 0, end = 0; end < n || begin == 0; begin += PANEL) {
    end = begin + PANEL < n ? begin + PANEL : n;
    const int next = end + PANEL < n ? end + PANEL : n;
    __syncthreads();
    solve_rows(A, begin, end);
    __syncthreads();
    if (is_ahead && end < n) {
      update_diagonal(A, begin, end, next);
      __syncwarp();
      factor_block(A, end, next, smallest, failed, least);
    }
    if (is_ahead && !is_alone) continue;
    if (end < n) update_behind(A, begin, end, next, is_alone ? 0 : width);
  }
  // The lanes of the first warp know the same, the others nothing.
  const Pivots<T> pivots = from_first(Pivots<T>{least, failed});
  least = pivots.least, failed = pivots.failed;
}

// x <- L⁻ᵀ x for n right-hand sides, each of them contiguous, `stride` apart.
template <class T> void solve_transposed(const Triangle<T> &A, T *x, int n, int stride) {
  for (int I = A.n_tiles - 1; I >= 0; I--) {
    const T *row = A.row(I);
    T L[TILE_SIZE];
    load_tile(L, A.tile(I, I));
    for (int s = 0; s < n; s++) {
      T *own = x + (long long)s * stride;
      T known[TILE];
#pragma unroll
      for (int a = 0; a < TILE; a++) known[a] = own[I * TILE + a];
      solve_column(known, L);
      for (int k = rank(); k < I * TILE; k += n_threads()) {
        const Four<T> column = load_four(row + Triangle<T>::column(k));
        T value = own[k];
#pragma unroll
        for (int a = 0; a < TILE; a++) value -= column.at[a] * known[a];
        own[k] = value;
      }
    }
    __syncthreads();
    // Now nobody needs what was there: each thread has its part of the update.
    for (int s = rank(); s < n; s += n_threads())
      solve_column(x + (long long)s * stride + I * TILE, L);
  }
  __syncthreads();
}

}  // namespace lsgp
