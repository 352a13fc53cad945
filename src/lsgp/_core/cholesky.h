// SPDX-License-Identifier: BSD-3-Clause
// Cholesky factor of W interleaved matrices: every entry is a vector whose lanes belong to
// different queries, so there are no shuffles, and one register tile of T x T entries does
// T*T multiply-adds per 2T loads.
//
// Storage: the lower triangle by tile rows. Tile row I holds its T rows of columns
// 0 .. T(I+1)-1, column by column: entry (T*I + a, k) is row(I)[k*T + a]. So the inner product
// of two tile rows streams both of them contiguously, whatever the matrix size (a plain
// row-major layout loses a factor of two at sizes where rows alias in the cache).
//
// Right-hand sides are extra tile rows below the matrix, of full width: the factorization
// leaves L⁻¹ b in them, so forward substitution needs no code and no pass of its own.
#pragma once

#include <cstddef>

#include "simd.h"

namespace lsgp {

// T*T accumulators and 2T operands must fit the registers: 32 (AVX-512, NEON) or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE = 4;
#else
constexpr int TILE = 3;
#endif

// Tile columns per panel: a tile row's share of it stays in the first-level cache.
constexpr int PANEL = 16;
// Tile rows whose shares of a panel are used together: in that cache, or next to it with AVX-512.
constexpr int ROWS_TOGETHER = 4;

template <class V> struct TiledTriangle {
  V *data;
  int n_tiles;      // tile rows of the matrix
  int n_rhs_tiles;  // tile rows of right-hand sides below it

  size_t size() const { return row(n_tiles + n_rhs_tiles) - row(0); }
  V *row(int I) const {
    const size_t above = I <= n_tiles
        ? size_t(I) * (I + 1) / 2
        : size_t(n_tiles) * (n_tiles + 1) / 2 + size_t(I - n_tiles) * n_tiles;
    return data + size_t(TILE) * TILE * above;
  }
  V *tile(int I, int J) const { return row(I) + size_t(TILE) * TILE * J; }
};

template <class V> using Tile = V[TILE * TILE];

// acc(a, b) -= sum over n columns of x(a) y(b); tiles are stored column by column.
template <class V>
inline void subtract_product(V *__restrict__ acc, const V *__restrict__ x,
                             const V *__restrict__ y, int n) {
  for (int k = 0; k < n; k++, x += TILE, y += TILE) {
#pragma GCC unroll 4
    for (int b = 0; b < TILE; b++) {
#pragma GCC unroll 4
      for (int a = 0; a < TILE; a++) acc[b * TILE + a] -= x[a] * y[b];
    }
  }
}

// Factor a diagonal tile; the diagonal keeps 1/L. Lanes with a pivot that is not a finite number
// above `smallest` are marked in `failed` and go on with a pivot of 1; `least` becomes the least of
// the others.
template <class V, class I> inline void factor_tile(V *c, V smallest, I &failed, V &least) {
  const V zero = {}, one = zero + Element<V>(1);
  for (int b = 0; b < TILE; b++) {
    V pivot = c[b * TILE + b];
    for (int k = 0; k < b; k++) pivot -= c[k * TILE + b] * c[k * TILE + b];
    const I good = (pivot > smallest) & (pivot - pivot == zero);
    failed |= ~good;
    least = (good & (pivot < least)) ? pivot : least;
    const V inverse = one / sqrt(good ? pivot : one);
    c[b * TILE + b] = inverse;
    for (int a = b + 1; a < TILE; a++) {
      V value = c[b * TILE + a];
      for (int k = 0; k < b; k++) value -= c[k * TILE + a] * c[k * TILE + b];
      c[b * TILE + a] = value * inverse;
    }
  }
}

// acc <- acc L⁻ᵀ for the factored diagonal tile L.
template <class V> inline void solve_tile(V *__restrict__ acc, const V *__restrict__ L) {
#pragma GCC unroll 4
  for (int b = 0; b < TILE; b++) {
#pragma GCC unroll 4
    for (int k = 0; k < b; k++) {
#pragma GCC unroll 4
      for (int a = 0; a < TILE; a++) acc[b * TILE + a] -= acc[k * TILE + a] * L[k * TILE + b];
    }
#pragma GCC unroll 4
    for (int a = 0; a < TILE; a++) acc[b * TILE + a] *= L[b * TILE + b];
  }
}

// Both, with the tile in registers throughout.
template <bool SOLVE, class V>
inline void update_tile(V *__restrict__ c, const V *__restrict__ x, const V *__restrict__ y,
                        int n, const V *__restrict__ L) {
  Tile<V> acc;
#pragma GCC unroll 16
  for (int e = 0; e < TILE * TILE; e++) acc[e] = c[e];
  subtract_product(acc, x, y, n);
  if (SOLVE) solve_tile(acc, L);
#pragma GCC unroll 16
  for (int e = 0; e < TILE * TILE; e++) c[e] = acc[e];
}

// Columns of a panel, begin .. end - 1, of one tile row below those that are above it.
template <class V>
inline void solve_panel(const TiledTriangle<V> &A, int R, int begin, int end) {
  for (int J = begin; J < end; J++)
    update_tile<true>(A.tile(R, J), A.tile(R, begin), A.tile(J, begin), (J - begin) * TILE,
                      A.tile(J, J));
}

// [E3] Factor in place, right-hand sides included. Every entry is accumulated in the order of
// the columns whatever the panel width, so a lane's result depends on its own numbers only.
// Tile rows below a panel are taken ROWS_TOGETHER at a time: their shares of it stay near while those of the
// rows above, which fit no near cache together, are read once for all of them.
template <class V, class I>
void factor(const TiledTriangle<V> &A, V smallest, I &failed, V &least) {
  const int n_rows = A.n_tiles + A.n_rhs_tiles;
  for (int begin = 0; begin < A.n_tiles; begin += PANEL) {
    const int end = begin + PANEL < A.n_tiles ? begin + PANEL : A.n_tiles;
    for (int R = begin; R < end; R++) {
      solve_panel(A, R, begin, R);
      const V *left = A.tile(R, begin);
      update_tile<false>(A.tile(R, R), left, left, (R - begin) * TILE, left);
      factor_tile(A.tile(R, R), smallest, failed, least);
    }
    for (int first = end; first < n_rows; first += ROWS_TOGETHER) {
      const int behind = first + ROWS_TOGETHER < n_rows ? first + ROWS_TOGETHER : n_rows;
      for (int R = first; R < behind; R++) solve_panel(A, R, begin, end);
      for (int J = end; J < behind && J < A.n_tiles; J++) {
        const V *above = A.tile(J, begin);
        for (int R = first > J ? first : J; R < behind; R++)
          update_tile<false>(A.tile(R, J), A.tile(R, begin), above, (end - begin) * TILE, above);
      }
    }
  }
}

// x <- L⁻ᵀ x for one right-hand side of n_tiles * TILE contiguous vectors.
template <class V> void solve_transposed(const TiledTriangle<V> &A, V *__restrict__ x) {
  for (int I = A.n_tiles - 1; I >= 0; I--) {
    const V *row = A.row(I), *L = A.tile(I, I);
    V *own = x + I * TILE;
    for (int a = TILE - 1; a >= 0; a--) {
      V value = own[a];
      for (int b = a + 1; b < TILE; b++) value -= L[a * TILE + b] * own[b];
      own[a] = value * L[a * TILE + a];
    }
    V known[TILE];
    for (int a = 0; a < TILE; a++) known[a] = own[a];
    for (int k = 0; k < I * TILE; k++) {
      V value = x[k];
#pragma GCC unroll 4
      for (int a = 0; a < TILE; a++) value -= row[k * TILE + a] * known[a];
      x[k] = value;
    }
  }
}

}  // namespace lsgp
