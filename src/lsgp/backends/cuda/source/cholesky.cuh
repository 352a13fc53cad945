// SPDX-License-Identifier: BSD-3-Clause
// Cholesky factor of one matrix by the threads of a block, in the layout of _core/cholesky.h: the
// lower triangle by tiles of 4 x 4, one after another in each tile row, right-hand sides as tile rows
// below it. Between tiles are 4 numbers to spare, so that 8 tiles that are one after another, or one
// below another, lie in different banks of the shared memory.
#pragma once

namespace lsgp {

constexpr int TILE = 4, TILE_SIZE = 16, TILE_STRIDE = 20;
constexpr int PANEL = 4;  // tile columns

template <class T> struct Triangle {
  T *data;
  int n_tiles;      // tile rows of the matrix
  int n_rhs_tiles;  // tile rows of right-hand sides below it

  T *row(int I) const {
    const long long n = n_tiles, above = I <= n_tiles
        ? (long long)I * (I + 1) / 2
        : n * (n + 1) / 2 + (I - n) * n;
    return data + TILE_STRIDE * above;
  }
  T *tile(int I, int J) const { return row(I) + TILE_STRIDE * J; }
  // Column k of a tile row begins here.
  static int column(int k) { return k / TILE * TILE_STRIDE + k % TILE * TILE; }
};

// The tiles (I, J), J <= I, of the tile rows from `first` to behind `last_row`, columns from `first`
// to behind `n_columns`, as this thread's share of them.
struct TileWalk {
  int first, last_row, n_columns, I, J;

  TileWalk(int first, int last_row, int n_columns)
      : first(first), last_row(last_row), n_columns(n_columns), I(first), J(first) {
    advance(rank());
  }
  bool is_there() const { return I < last_row; }
  void next() { advance(n_threads()); }

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
    const T inverse = inverse_sqrt(good ? pivot : T(1));
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

// Tile column J of the factor, n tile columns behind the begin of its panel. Every thread factors
// the diagonal tile, so that all know of a failure without being told.
template <class T>
inline void factor_column(const Triangle<T> &A, int J, const int n, T smallest, bool &failed,
                          T &least) {
  T c[TILE_SIZE];
  const T *left = A.tile(J, J - n);
  load_tile(c, A.tile(J, J));
#pragma unroll
  for (int s = 0; s < n; s++)
    subtract_product(c, left + s * TILE_STRIDE, left + s * TILE_STRIDE);
  factor_tile(c, smallest, failed, least);
  const int n_rows = (A.n_tiles + A.n_rhs_tiles) * TILE;
  for (int r = (J + 1) * TILE + rank(); r < n_rows; r += n_threads()) {
    T *own = A.tile(r / TILE, J) + r % TILE;
    const T *known = own - n * TILE_STRIDE;
    T x[TILE];
#pragma unroll
    for (int b = 0; b < TILE; b++) x[b] = own[b * TILE];
#pragma unroll
    for (int k = 0; k < n * TILE; k++) {
      const int at = k / TILE * TILE_STRIDE + k % TILE * TILE;
      const T value = known[at];
      const Four<T> other = load_four(left + at);
#pragma unroll
      for (int b = 0; b < TILE; b++) x[b] -= value * other.at[b];
    }
#pragma unroll
    for (int b = 0; b < TILE; b++) {
#pragma unroll
      for (int k = 0; k < b; k++) x[b] -= x[k] * c[k * TILE + b];
      x[b] *= c[b * TILE + b];
      own[b * TILE] = x[b];
    }
  }
  __syncthreads();
  // All have read the tile, and none reads it again before the factor is done.
  if (rank() == 0) store_tile(A.tile(J, J), c);
}

// [E3] Factor in place, right-hand sides included.
template <class T> void factor(const Triangle<T> &A, T smallest, bool &failed, T &least) {
  const int n_rows = A.n_tiles + A.n_rhs_tiles;
  for (int begin = 0; begin < A.n_tiles; begin += PANEL) {
    const int end = begin + PANEL < A.n_tiles ? begin + PANEL : A.n_tiles;
#pragma unroll
    for (int n = 0; n < PANEL; n++)
      if (begin + n < end) factor_column(A, begin + n, n, smallest, failed, least);
    for (TileWalk at(end, n_rows, A.n_tiles); at.is_there(); at.next()) {
      T c[TILE_SIZE];
      T *tile = A.tile(at.I, at.J);
      const T *x = A.tile(at.I, begin), *y = A.tile(at.J, begin);
      load_tile(c, tile);
      // Behind a panel that is not the last one, it has its full width.
#pragma unroll
      for (int s = 0; s < PANEL; s++)
        subtract_product(c, x + s * TILE_STRIDE, y + s * TILE_STRIDE);
      store_tile(tile, c);
    }
    __syncthreads();
  }
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
      for (int a = TILE - 1; a >= 0; a--) {
        T value = own[I * TILE + a];
#pragma unroll
        for (int b = a + 1; b < TILE; b++) value -= L[a * TILE + b] * known[b];
        known[a] = value * L[a * TILE + a];
      }
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
    for (int s = rank(); s < n; s += n_threads()) {
      T *own = x + (long long)s * stride + I * TILE;
#pragma unroll
      for (int a = TILE - 1; a >= 0; a--) {
        T value = own[a];
#pragma unroll
        for (int b = a + 1; b < TILE; b++) value -= L[a * TILE + b] * own[b];
        own[a] = value * L[a * TILE + a];
      }
    }
  }
  __syncthreads();
}

}  // namespace lsgp
