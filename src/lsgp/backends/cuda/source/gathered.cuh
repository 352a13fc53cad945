// SPDX-License-Identifier: BSD-3-Clause
// What all threads of a block learn together of the neighbors of a query, in one reduction each.
#pragma once

namespace lsgp {

// The farthest neighbor, of several as far the first, and whether a squared distance is NaN or
// infinite.
template <class T> struct Farthest {
  T r2;
  int row, is_bad;

  static Farthest of(Farthest a, Farthest b) {
    const bool is_second = b.r2 > a.r2 || (b.r2 == a.r2 && b.row < a.row);
    return {is_second ? b.r2 : a.r2, is_second ? b.row : a.row, a.is_bad | b.is_bad};
  }
};
template <class T> inline Farthest<T> of_partner(Farthest<T> own, int bits) {
  return {of_partner(own.r2, bits), of_partner(own.row, bits), of_partner(own.is_bad, bits)};
}

// Sums over the points in the system, and the last of them.
template <class T> struct Counted {
  T weights, r2, points;
  int last;

  static Counted of(Counted a, Counted b) {
    return {a.weights + b.weights, a.r2 + b.r2, a.points + b.points,
            a.last > b.last ? a.last : b.last};
  }
};
template <class T> inline Counted<T> of_partner(Counted<T> own, int bits) {
  return {of_partner(own.weights, bits), of_partner(own.r2, bits), of_partner(own.points, bits),
          of_partner(own.last, bits)};
}

}  // namespace lsgp
