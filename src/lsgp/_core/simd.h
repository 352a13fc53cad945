// SPDX-License-Identifier: BSD-3-Clause
// One vector type per element type, as wide as the instruction set this file is compiled for
// (GCC and Clang vector extensions). A lane never sees its neighbors: the result of a lane does
// not depend on what the other lanes hold.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LSGP_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define LSGP_VECTOR_BYTES 32
#else
#define LSGP_VECTOR_BYTES 16
#endif

namespace lsgp {

template <class T> struct Simd;

template <> struct Simd<double> {
  typedef double Vec __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  typedef int64_t Int __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  static constexpr int W = LSGP_VECTOR_BYTES / 8;
};

template <> struct Simd<float> {
  typedef float Vec __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  typedef int32_t Int __attribute__((vector_size(LSGP_VECTOR_BYTES)));
  static constexpr int W = LSGP_VECTOR_BYTES / 4;
};

typedef Simd<double>::Vec VecD;
typedef Simd<float>::Vec VecF;

// The number type behind V, so that formulas can name their constants in it.
template <class V> struct ElementOf;
template <> struct ElementOf<VecD> { typedef double type; };
template <> struct ElementOf<VecF> { typedef float type; };
template <class V> using Element = typename ElementOf<V>::type;

inline VecD splat(double x) { return VecD{} + x; }
inline VecF splat(float x) { return VecF{} + x; }

// Comparisons of vectors give 0 or -1 per lane; any() asks for at least one -1.
template <class I> inline bool any(I mask) {
  I zero = {};
  return std::memcmp(&mask, &zero, sizeof(I)) != 0;
}

#if defined(__AVX512F__)
inline VecD sqrt(VecD x) { return (VecD)_mm512_sqrt_pd((__m512d)x); }
inline VecF sqrt(VecF x) { return (VecF)_mm512_sqrt_ps((__m512)x); }
#elif defined(__AVX2__)
inline VecD sqrt(VecD x) { return (VecD)_mm256_sqrt_pd((__m256d)x); }
inline VecF sqrt(VecF x) { return (VecF)_mm256_sqrt_ps((__m256)x); }
#elif defined(__SSE2__)
inline VecD sqrt(VecD x) { return (VecD)_mm_sqrt_pd((__m128d)x); }
inline VecF sqrt(VecF x) { return (VecF)_mm_sqrt_ps((__m128)x); }
#elif defined(__aarch64__)
inline VecD sqrt(VecD x) { return (VecD)vsqrtq_f64((float64x2_t)x); }
inline VecF sqrt(VecF x) { return (VecF)vsqrtq_f32((float32x4_t)x); }
#else
template <class V> inline V sqrt_by_lane(V x) {
  for (unsigned l = 0; l < sizeof(V) / sizeof(x[0]); l++) x[l] = std::sqrt(x[l]);
  return x;
}
inline VecD sqrt(VecD x) { return sqrt_by_lane(x); }
inline VecF sqrt(VecF x) { return sqrt_by_lane(x); }
#endif

}  // namespace lsgp
