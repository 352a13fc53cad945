// SPDX-License-Identifier: BSD-3-Clause
// All pairs of n rows: the covariance of an exact GP, and sums over its adjoint, for the evidence and
// its gradient. Matrices are symmetric: of each only the lower triangle is written and read, by rows;
// what lies above the diagonal may be anything. Vectors run along the columns of a row.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "simd.h"
#include "vector_math.h"

#include "formulas.h"

namespace lsgp {

template <class T> inline typename Simd<T>::Vec load_any(const T *from) {
  typename Simd<T>::Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

template <class T> inline void store_any(T *to, typename Simd<T>::Vec v) {
  std::memcpy(to, &v, sizeof v);
}

// The first `count` elements of a row that may end there, and zeros.
template <class T> inline typename Simd<T>::Vec load_some(const T *from, int64_t count) {
  constexpr int64_t W = Simd<T>::W;
  if (count >= W) return load_any(from);
  typename Simd<T>::Vec v = {};
  std::memcpy(&v, from, size_t(count) * sizeof(T));
  return v;
}

template <class T> inline T sum_of(typename Simd<T>::Vec v) {
  T total = 0;
  for (int l = 0; l < Simd<T>::W; ++l) total += v[l];
  return total;
}

// Columns of a matrix (n, c) one behind the other, each of `stride` elements, with zeros at its end.
template <class T> struct Columns {
  int64_t n, c, stride;
  std::vector<T> values;

  Columns(int64_t n, int64_t c)
      : n(n), c(c), stride((n / Simd<T>::W + 1) * Simd<T>::W), values(size_t(c * stride)) {}

  Columns(const T *rows, int64_t n, int64_t c) : Columns(n, c) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k) values[size_t(k * stride + i)] = rows[i * c + k];
  }

  T *at(int64_t k, int64_t i) { return values.data() + k * stride + i; }
  const T *at(int64_t k, int64_t i) const { return values.data() + k * stride + i; }

  void add_to(T *rows) const {  // (n, c)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k) rows[i * c + k] += values[size_t(k * stride + i)];
  }
};

// [E1] of rows z (n, d): correlations, with a constant and slopes, and their derivatives by r².
template <class T>
void correlate_pairs(Kernel kernel, const T *z, int64_t n, int64_t d, T constant, T slope,
                     T *covariance, T *by_r2) {
  typedef typename Simd<T>::Vec Vec;
  constexpr int64_t W = Simd<T>::W;
  const Columns<T> columns(z, n, d);
  with_kernel(kernel, [&](auto formula) {
    for (int64_t i = 0; i < n; ++i) {
      const T *own = z + i * d;
      for (int64_t j = 0; j <= i; j += W) {
        Vec r2 = {}, product = {};
        for (int64_t k = 0; k < d; ++k) {
          const Vec other = load_any(columns.at(k, j));
          const Vec difference = other - own[k];
          r2 += difference * difference;
          product += other * own[k];
        }
        const auto rho = decltype(formula)::at(r2);
        const Vec value = rho.value + (product * slope + constant);
        const int64_t left = i + 1 - j;
        const size_t bytes = size_t(left < W ? left : W) * sizeof(T);
        std::memcpy(covariance + i * n + j, &value, bytes);
        std::memcpy(by_r2 + i * n + j, &rho.derivative, bytes);
      }
    }
  });
}

// What sums over pairs leave; all but `total` are added to.
template <class T> struct PairSums {
  T *diagonal;     // (n,) of G
  T total;         // of all of G
  T *by_z;         // (n, d) G z; null: nobody asks for these two
  T *pairs;        // (n,) of the rows of P
  T *pairs_by_z;   // (n, d) P z
};

// Sums of G = ½ (inverse - left rightᵀ) and of its products P with by_r2, whose diagonal is left out:
// a row is at no distance from itself. left, right (n, r).
template <class T>
void sum_pairs(const T *inverse, const T *by_r2, const T *left, const T *right, int64_t r,
               const T *z, int64_t n, int64_t d, PairSums<T> &sums) {
  typedef typename Simd<T>::Vec Vec;
  constexpr int64_t W = Simd<T>::W, TOGETHER = 4;
  const Columns<T> columns(z, n, d), others(right, n, r);
  Columns<T> pairs(n, 1), pairs_by_z(n, d), by_z(n, sums.by_z ? d : 0);
  std::vector<Vec> of_rows(size_t(2 * TOGETHER * d));
  Vec total = {};
  T total_of_diagonal = 0;
  Vec lanes = {};
  for (int64_t l = 0; l < W; ++l) lanes[l] = T(l);
  for (int64_t first = 0; first < n; first += TOGETHER) {
    const int64_t size = n - first < TOGETHER ? n - first : TOGETHER;
    Vec *row_pairs_by_z = of_rows.data(), *row_by_z = of_rows.data() + TOGETHER * d;
    for (Vec &v : of_rows) v = Vec{};
    Vec row_pairs[TOGETHER] = {};
    for (int64_t j = 0; j < first + size; j += W) {
      Vec G[TOGETHER] = {}, P[TOGETHER] = {};
      Vec column_pairs = load_any(pairs.at(0, j));
      for (int64_t a = 0; a < size; ++a) {
        const int64_t i = first + a;
        if (j > i) continue;
        Vec g = load_some(inverse + i * n + j, n - j);
        for (int64_t k = 0; k < r; ++k) g -= load_any(others.at(k, j)) * left[i * r + k];
        g *= T(0.5);
        if (i < j + W) {
          sums.diagonal[i] = g[i - j];
          total_of_diagonal += g[i - j];
          g = lanes < T(i - j) ? g : Vec{};
        }
        Vec derivative = load_some(by_r2 + i * n + j, n - j);
        if (i < j + W) derivative = lanes < T(i - j) ? derivative : Vec{};
        G[a] = g;
        P[a] = g * derivative;
        row_pairs[a] += P[a];
        column_pairs += P[a];
        total += g;
      }
      store_any(pairs.at(0, j), column_pairs);
      for (int64_t k = 0; k < d; ++k) {
        const Vec other = load_any(columns.at(k, j));
        Vec column = load_any(pairs_by_z.at(k, j));
        for (int64_t a = 0; a < size; ++a) {
          column += P[a] * z[(first + a) * d + k];
          row_pairs_by_z[a * d + k] += P[a] * other;
        }
        store_any(pairs_by_z.at(k, j), column);
        if (!sums.by_z) continue;
        column = load_any(by_z.at(k, j));
        for (int64_t a = 0; a < size; ++a) {
          column += G[a] * z[(first + a) * d + k];
          row_by_z[a * d + k] += G[a] * other;
        }
        store_any(by_z.at(k, j), column);
      }
    }
    for (int64_t a = 0; a < size; ++a) {
      const int64_t i = first + a;
      sums.pairs[i] += sum_of<T>(row_pairs[a]);
      for (int64_t k = 0; k < d; ++k) {
        sums.pairs_by_z[i * d + k] += sum_of<T>(row_pairs_by_z[a * d + k]);
        if (sums.by_z)
          sums.by_z[i * d + k] += sum_of<T>(row_by_z[a * d + k]) + sums.diagonal[i] * z[i * d + k];
      }
    }
  }
  pairs.add_to(sums.pairs);
  pairs_by_z.add_to(sums.pairs_by_z);
  if (sums.by_z) by_z.add_to(sums.by_z);
  sums.total = T(2) * sum_of<T>(total) + total_of_diagonal;
}

}  // namespace lsgp
