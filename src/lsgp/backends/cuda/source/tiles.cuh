// SPDX-License-Identifier: BSD-3-Clause
// A matrix that is factored, in the layout of _core/cholesky.h: the lower triangle by tiles of 4 x 4,
// one after another in each tile row, right-hand sides as tile rows below it. In shared memory there
// are 4 numbers to spare between tiles, so that 8 tiles that are one after another, or one below
// another, lie in different banks.
#pragma once

namespace lsgp {

constexpr int TILE = 4, TILE_SIZE = 16, TILE_STRIDE = LSGP_MATRIX_SHARED ? 20 : 16;

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

  // Right-hand sides do not follow the last row in use but all that there is room for: the kernel for
  // m = 256 has 253 registers then, and 2.06 million solves a second; else 209, and 1.91.
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

template <class T> inline void load_tile(T *c, const T *tile) {
#pragma unroll
  for (int b = 0; b < TILE; b++) {
    const Four<T> column = load_four(tile + b * TILE);
#pragma unroll
    for (int a = 0; a < TILE; a++) c[b * TILE + a] = column.at[a];
  }
}

template <class T> inline void store_tile(T *tile, const T *c) {
#pragma unroll
  for (int b = 0; b < TILE; b++) {
    Four<T> column;
#pragma unroll
    for (int a = 0; a < TILE; a++) column.at[a] = c[b * TILE + a];
    *reinterpret_cast<Four<T> *>(tile + b * TILE) = column;
  }
}

// Of a diagonal tile, whose diagonal keeps 1/L. A pivot that is not a finite number above `smallest`
// is a failure, and work goes on with 1; `least` becomes the least of the others.
template <class T> inline void factor_tile(T *c, T smallest, bool &failed, T &least) {
#pragma unroll
  for (int b = 0; b < TILE; b++) {
    T pivot = c[b * TILE + b];
#pragma unroll
    for (int k = 0; k < b; k++) pivot -= c[k * TILE + b] * c[k * TILE + b];
    const bool good = pivot > smallest && pivot - pivot == T(0);
    failed = failed || !good;
    least = good && pivot < least ? pivot : least;
    const T inverse = good ? inverse_sqrt(pivot) : T(1);
    c[b * TILE + b] = inverse;
#pragma unroll
    for (int a = b + 1; a < TILE; a++) {
      T value = c[b * TILE + a];
#pragma unroll
      for (int k = 0; k < b; k++) value -= c[k * TILE + a] * c[k * TILE + b];
      c[b * TILE + a] = value * inverse;
    }
  }
}

// c -= x yᵀ over one tile each.
template <class T> inline void subtract_product(T *c, const T *x, const T *y) {
#pragma unroll
  for (int k = 0; k < TILE; k++) {
    const Four<T> left = load_four(x + k * TILE), right = load_four(y + k * TILE);
#pragma unroll
    for (int b = 0; b < TILE; b++)
#pragma unroll
      for (int a = 0; a < TILE; a++) c[b * TILE + a] -= left.at[a] * right.at[b];
  }
}

// x <- x L⁻ᵀ for a factored diagonal tile.
template <class T> inline void solve_row(T *x, const T *L) {
#pragma unroll
  for (int b = 0; b < TILE; b++) {
#pragma unroll
    for (int k = 0; k < b; k++) x[b] -= x[k] * L[k * TILE + b];
    x[b] *= L[b * TILE + b];
  }
}

}  // namespace lsgp
