// SPDX-License-Identifier: BSD-3-Clause
// A matrix that is factored, in the layout of _core/cholesky.h: the lower triangle by tiles of 4 x 4,
// one after another in each tile row, right-hand sides as tile rows below it. In shared memory there
// are 4 numbers to spare between tiles, so that 8 tiles that are one after another, or one below
// another, lie in different banks.
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

}  // namespace lsgp
