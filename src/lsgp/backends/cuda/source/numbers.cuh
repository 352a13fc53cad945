// SPDX-License-Identifier: BSD-3-Clause
// What formulas.h, losses.h and problem.h ask of a number, on a device, pasted before them; and
// small tiles of numbers. In single precision the special function units are as exact as the
// formulas need: exp and sqrt are off by 2 units in the last place, and exp by the rounding of its
// argument. In double precision both are off by less than 2 units too; the library's, which know
// every special case, have twice the instructions, and are there once for each entry of a matrix
// that is in registers.
#pragma once

#ifndef LSGP_EMULATED
namespace std {  // what losses.h calls by this name
using ::erf;
using ::exp;
using ::isfinite;
using ::isinf;
using ::lgamma;
using ::log;
using ::log1p;
using ::sqrt;
}  // namespace std
#endif

namespace lsgp {

template <class V> using Element = V;

#ifdef LSGP_EMULATED
using std::exp;
using std::sqrt;
template <class T> inline T inverse_sqrt(T x) { return T(1) / sqrt(x); }
#else
inline float exp(float x) { return __expf(x); }
// 2ⁿ eʳ, |r| < log(2)/2, by the series of eʳ. Below -708 it stays at the least normal number.
inline double exp(double x) {
  x = x > -708. ? (x < 709. ? x : 709.) : -708.;
  const double rounder = 6755399441055744.;  // 1.5 * 2^52: what is added to it is rounded
  const double shifted = fma(x, 1.4426950408889634, rounder), n = shifted - rounder;
  const double r = fma(n, -1.9082149292705877e-10, fma(n, -0.6931471803691238, x));
  constexpr double SERIES[] = {  // from 1 / 12! on
      2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07, 2.7557319223985893e-06,
      2.48015873015873e-05, 0.0001984126984126984, 0.001388888888888889, 0.008333333333333333,
      0.041666666666666664, 0.16666666666666666, 0.5, 1., 1.};
  double sum = SERIES[0];
#pragma unroll
  for (int i = 1; i < 13; i++) sum = fma(sum, r, SERIES[i]);
  return __hiloint2double(__double2hiint(sum) + (__double2loint(shifted) << 20),
                          __double2loint(sum));
}
inline float sqrt(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
// By the unit's approximation and Newton's steps; 0 and infinity stay what they are.
inline double sqrt(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  double root = x * y, half = 0.5 * y;
  const double rest = fma(-root, half, 0.5);
  root = fma(root, rest, root), half = fma(half, rest, half);
  root = fma(fma(-root, root, x), half, root);
  return x > 1e-290 && x < 1e290 ? root : x;
}
inline float inverse_sqrt(float x) {
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
inline double inverse_sqrt(double x) { return rsqrt(x); }
#endif

// Numbers that are read and written at once.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Several {
  T at[N];
};
template <class T> using Four = Several<T, 4>;
template <int N, class T> inline Several<T, N> load_several(const T *p) {
  return *reinterpret_cast<const Several<T, N> *>(p);
}
template <class T> inline Four<T> load_four(const T *p) { return load_several<4>(p); }

constexpr int TILE = 4, TILE_SIZE = 16;  // by columns

// Of a diagonal tile, whose diagonal keeps 1/L. A pivot that is not a finite number above
// `smallest` is a failure, and work goes on with 1; `least` becomes the least of the others.
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

// x <- x L⁻ᵀ for a factored diagonal tile.
template <class T> inline void solve_row(T *x, const T *L) {
#pragma unroll
  for (int b = 0; b < TILE; b++) {
#pragma unroll
    for (int k = 0; k < b; k++) x[b] -= x[k] * L[k * TILE + b];
    x[b] *= L[b * TILE + b];
  }
}

// x <- L⁻ᵀ x, likewise.
template <class T> inline void solve_column(T *x, const T *L) {
#pragma unroll
  for (int a = TILE - 1; a >= 0; a--) {
#pragma unroll
    for (int b = a + 1; b < TILE; b++) x[a] -= L[a * TILE + b] * x[b];
    x[a] *= L[a * TILE + a];
  }
}

}  // namespace lsgp
