// SPDX-License-Identifier: BSD-3-Clause
// What formulas.h and losses.h ask of a number, on a device; pasted before them. In single precision
// the special function units are as exact as the formulas need: exp and sqrt are off by 2 units in
// the last place, and exp by the rounding of its argument.
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
inline double exp(double x) { return ::exp(x); }
inline float sqrt(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
inline double sqrt(double x) { return ::sqrt(x); }
inline float inverse_sqrt(float x) { return rsqrtf(x); }
inline double inverse_sqrt(double x) { return rsqrt(x); }
#endif

template <class T> struct Digits;
template <> struct Digits<float> {
  static constexpr float epsilon = 1.1920928955078125e-07f;
};
template <> struct Digits<double> {
  static constexpr double epsilon = 2.220446049250313e-16;
};

// Four numbers that are read and written at once.
template <class T> struct alignas(16) Four {
  T at[4];
};
template <class T> inline Four<T> load_four(const T *p) {
  return *reinterpret_cast<const Four<T> *>(p);
}

}  // namespace lsgp
