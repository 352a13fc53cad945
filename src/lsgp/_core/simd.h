// SPDX-License-Identifier: BSD-3-Clause
// One vector type per element type, as wide as the instruction set this file is compiled for
// (GCC and Clang vector extensions), and what formulas.h asks of a number: exp, sqrt and Element. A
// lane never sees its neighbors: the result of a lane does not depend on what the other lanes hold.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LSGP_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define LSGP_VECTOR_BYTES 32
#else
#define LSGP_VECTOR_BYTES 16
#endif

namespace lsgp {

template <class T> struct Simd {
  typedef std::conditional_t<sizeof(T) == 8, int64_t, int32_t> Whole;
  typedef T Vec __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  typedef Whole Int __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  static constexpr int W = LSGP_VECTOR_BYTES / sizeof(T);
};

typedef Simd<double>::Vec VecD;
typedef Simd<float>::Vec VecF;

// The number type behind V, so that formulas can name their constants in it.
template <class V> using Element = std::decay_t<decltype(V{}[0])>;

inline VecD splat(double x) { return VecD{} + x; }
inline VecF splat(float x) { return VecF{} + x; }

template <class T> inline typename Simd<T>::Vec load(const T *p) {
  typename Simd<T>::Vec x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class T> inline void store(T *p, typename Simd<T>::Vec x) {
  std::memcpy(p, &x, sizeof x);
}

template <class V> inline Element<V> sum_of_lanes(V x) {
  Element<V> sum = 0;
  for (unsigned l = 0; l < sizeof(V) / sizeof(sum); l++) sum += x[l];
  return sum;
}

// Comparisons of vectors give 0 or -1 per lane; any() asks for at least one -1.
template <class I> inline bool any(I mask) {
  I zero = {};
  return std::memcmp(&mask, &zero, sizeof(I)) != 0;
}

// Bit l is set where lane l of a comparison is true. (One template, because compilers differ in
// which type of integers a comparison has.)
template <class I> inline unsigned true_lanes(I x) {
  [[maybe_unused]] constexpr bool is_double = sizeof(x[0]) == 8;
#if defined(__AVX512DQ__)
  if constexpr (is_double) return _mm512_movepi64_mask((__m512i)x);
  else return _mm512_movepi32_mask((__m512i)x);
#elif defined(__AVX2__)
  if constexpr (is_double) return _mm256_movemask_pd((__m256d)x);
  else return _mm256_movemask_ps((__m256)x);
#elif defined(__SSE2__)
  if constexpr (is_double) return _mm_movemask_pd((__m128d)x);
  else return _mm_movemask_ps((__m128)x);
#else
  unsigned bits = 0;
  for (unsigned l = 0; l < sizeof(I) / sizeof(x[0]); l++) bits |= unsigned(x[l] & 1) << l;
  return bits;
#endif
}

// One instruction: compilers see that all lanes are asked for the same.
inline VecD sqrt(VecD x) {
  for (int l = 0; l < Simd<double>::W; l++) x[l] = std::sqrt(x[l]);
  return x;
}
inline VecF sqrt(VecF x) {
  for (int l = 0; l < Simd<float>::W; l++) x[l] = std::sqrt(x[l]);
  return x;
}

// exp by range reduction x = n ln 2 + r, |r| <= ln 2 / 2, and a minimax polynomial with exact
// first two coefficients (so exp(0) = 1). Relative error below 1e-15 (double), 3e-7 (float);
// flushes to 0 below the smallest normal number. For x <= the logarithm of the largest number.
template <class T> struct Exponential;

template <> struct Exponential<double> {
  static constexpr double LEAST = -708.0, INVERSE_LN2 = 1.4426950408889634,
                          LN2 = 0.693145751953125, REST_OF_LN2 = 1.42860682030941723212e-6,
                          ROUNDER = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds
  static constexpr int N_DIGITS = 52;
  static constexpr double SERIES[] = {
      2.747685109010321e-07, 2.7635148817265857e-06, 2.4801932423184584e-05,
      0.00019841184892928666, 0.0013888888514685023, 0.008333333371096579,
      0.041666666668145884, 0.16666666666611124, 0.49999999999998307, 1.0, 1.0};
};

template <> struct Exponential<float> {
  static constexpr float LEAST = -87.0f, INVERSE_LN2 = 1.44269504f, LN2 = 0.693359375f,
                         REST_OF_LN2 = -2.12194440e-4f, ROUNDER = 12582912.0f;
  static constexpr int N_DIGITS = 23;
  static constexpr float SERIES[] = {0.0013814821f, 0.0083687848f, 0.0416683872f, 0.1666652006f,
                                     0.4999999345f, 1.0f, 1.0f};
};

template <class T> inline typename Simd<T>::Vec exp_of(typename Simd<T>::Vec x) {
  typedef typename Simd<T>::Vec V;
  typedef typename Simd<T>::Int Int;
  typedef Exponential<T> E;
  const Int underflow = x < E::LEAST;
  x = underflow ? splat(E::LEAST) : x;
  const V shifted = x * E::INVERSE_LN2 + splat(E::ROUNDER);
  const V n = shifted - splat(E::ROUNDER);
  const V r = (x - n * E::LN2) - n * E::REST_OF_LN2;
  V p = splat(E::SERIES[0]);
#pragma GCC unroll 16
  for (size_t i = 1; i < sizeof(E::SERIES) / sizeof(T); i++) p = p * r + E::SERIES[i];
  const V value = (V)((Int)p + ((Int)shifted << E::N_DIGITS));  // times 2^n
  return underflow ? V{} : value;
}
inline VecD exp(VecD x) { return exp_of<double>(x); }
inline VecF exp(VecF x) { return exp_of<float>(x); }

}  // namespace lsgp
