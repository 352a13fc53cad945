// SPDX-License-Identifier: BSD-3-Clause
// The formulas of kernels.py and localizers.py for compiled code, over any type V that has
// arithmetic, comparisons, sqrt() and exp(): a SIMD vector here, a plain number elsewhere.
// To add one: its formula, its code in the enum (the order of the Python table), its case in
// the dispatch below.
#pragma once

#include "simd.h"

namespace lsgp {

// exp by range reduction x = n ln 2 + r, |r| <= ln 2 / 2, and a minimax polynomial with exact
// first two coefficients (so exp(0) = 1). Relative error below 1e-15 (double), 3e-7 (float);
// flushes to 0 below the smallest normal number. For x <= the logarithm of the largest number.
inline VecD exp(VecD x) {
  typedef Simd<double>::Int Int;
  const VecD magic = splat(6755399441055744.0);  // 1.5 * 2^52: adding it rounds to an integer
  const Int underflow = x < -708.0;
  x = underflow ? splat(-708.0) : x;
  const VecD shifted = x * 1.4426950408889634 + magic;
  const VecD n = shifted - magic;
  const VecD r = (x - n * 0.693145751953125) - n * 1.42860682030941723212e-6;
  VecD p = splat(2.747685109010321e-07);
  p = p * r + 2.7635148817265857e-06;
  p = p * r + 2.4801932423184584e-05;
  p = p * r + 0.00019841184892928666;
  p = p * r + 0.0013888888514685023;
  p = p * r + 0.008333333371096579;
  p = p * r + 0.041666666668145884;
  p = p * r + 0.16666666666611124;
  p = p * r + 0.49999999999998307;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const VecD value = (VecD)((Int)p + ((Int)shifted << 52));  // times 2^n
  return underflow ? VecD{} : value;
}

inline VecF exp(VecF x) {
  typedef Simd<float>::Int Int;
  const VecF magic = splat(12582912.0f);
  const Int underflow = x < -87.0f;
  x = underflow ? splat(-87.0f) : x;
  const VecF shifted = x * 1.44269504f + magic;
  const VecF n = shifted - magic;
  const VecF r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  VecF p = splat(0.0013814821f);
  p = p * r + 0.0083687848f;
  p = p * r + 0.0416683872f;
  p = p * r + 0.1666652006f;
  p = p * r + 0.4999999345f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const VecF value = (VecF)((Int)p + ((Int)shifted << 23));
  return underflow ? VecF{} : value;
}

// ---- kernels: value and derivative with respect to the squared scaled distance r2 ----

template <class V> struct Correlation {
  V value, derivative;
};

struct Rbf {
  template <class V> static Correlation<V> at(V r2) {
    typedef Element<V> E;
    const V value = exp(r2 * E(-0.5));
    return {value, value * E(-0.5)};
  }
};

struct Matern12 {
  // The derivative is infinite at 0, where it only ever multiplies a zero: 0 stands there.
  template <class V> static Correlation<V> at(V r2) {
    typedef Element<V> E;
    const V r = sqrt(r2);
    const V value = exp(-r);
    return {value, r > E(0) ? (value * E(-0.5)) / r : V{}};
  }
};

struct Matern32 {
  template <class V> static Correlation<V> at(V r2) {
    typedef Element<V> E;
    const V a = sqrt(r2 * E(3.0));
    const V decay = exp(-a);
    return {(a + E(1.0)) * decay, decay * E(-1.5)};
  }
};

struct Matern52 {
  template <class V> static Correlation<V> at(V r2) {
    typedef Element<V> E;
    const V a = sqrt(r2 * E(5.0));
    const V decay = exp(-a);
    return {(a * a * E(1.0 / 3.0) + a + E(1.0)) * decay, (a + E(1.0)) * decay * E(-5.0 / 6.0)};
  }
};

enum class Kernel : int { rbf, matern12, matern32, matern52 };

// Calls f with the formula that belongs to the code, so that the branch is outside f's loops.
template <class F> inline void with_kernel(Kernel kernel, F &&f) {
  switch (kernel) {
    case Kernel::rbf: return f(Rbf{});
    case Kernel::matern12: return f(Matern12{});
    case Kernel::matern32: return f(Matern32{});
    case Kernel::matern52: return f(Matern52{});
  }
}

// ---- localizers: weight and its derivatives, as functions of s = u² and of the decay ----

template <class V> struct Weight {
  V value, by_s, by_decay;
};

enum class Localizer : int { rectangular, epanechnikov, gaussian, hilbert, smooth };

// Called once per neighbor, not once per pair: a plain switch will do. Zero for s > 1.
template <class V, class T> inline Weight<V> localize(Localizer localizer, V s, T decay) {
  const V one = V{} + T(1);
  const auto inside = s <= one;
  s = inside ? s : one;
  Weight<V> w = {one, V{}, V{}};
  switch (localizer) {
    case Localizer::rectangular: break;
    case Localizer::epanechnikov: w = {one - s, -one, V{}}; break;
    case Localizer::gaussian: {
      const V value = exp(s * -decay);
      w = {value, value * -decay, -s * value};
      break;
    }
    case Localizer::hilbert: {
      const V smallest = V{} + T(1e-12);
      const auto regular = s > smallest;
      const V value = one / sqrt(regular ? s : smallest);
      w = {value, regular ? value * value * value * T(-0.5) : V{}, V{}};
      break;
    }
    case Localizer::smooth: {
      const V gauss = exp(s * -decay);
      const V value = (one - s) * gauss;
      w = {value, -gauss - value * decay, -s * value};
      break;
    }
  }
  return {inside ? w.value : V{}, inside ? w.by_s : V{}, inside ? w.by_decay : V{}};
}

}  // namespace lsgp
