// SPDX-License-Identifier: BSD-3-Clause
// The formulas of kernels.py and localizers.py for compiled code, over any type V of numbers: a
// SIMD vector, a plain float or double, a number on a GPU. Nothing is included here, because a
// compiler at run time has no standard library: whoever includes this file provides, before it,
//   exp(V) and sqrt(V), global or in namespace lsgp, and
//   lsgp::Element<V>, the type of V's elements, in which constants are named; V itself if plain.
// NVRTC takes it as it is, with -default-device.
// V has arithmetic and comparisons, also with its elements, and V{} is zero.
// To add a formula: its code in the enum (the order of the Python table), its case in the dispatch.
#pragma once

namespace lsgp {

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

struct Spherical {
  // (1 - r)² (1 + r/2), with 1 - r = (1 - r²) / (1 + r), which loses no digits near r = 1. Zero from
  // there on; the derivative is infinite at 0, as that of Matern12.
  template <class V> static Correlation<V> at(V r2) {
    typedef Element<V> E;
    const V one = V{} + E(1.0);
    const V inside = r2 < one ? r2 : one;
    const V r = sqrt(inside), rest = one - inside;
    const V left = rest / (one + r);
    return {left * left * (r * E(0.5) + one), r > E(0) ? (rest * E(-0.75)) / r : V{}};
  }
};

enum class Kernel : int { rbf, matern12, matern32, matern52, spherical };
constexpr int N_KERNELS = 5;

// Calls f with the formula that belongs to the code, so that the branch is outside f's loops.
template <class F> inline void with_kernel(Kernel kernel, F &&f) {
  switch (kernel) {
    case Kernel::rbf: return f(Rbf{});
    case Kernel::matern12: return f(Matern12{});
    case Kernel::matern32: return f(Matern32{});
    case Kernel::matern52: return f(Matern52{});
    case Kernel::spherical: return f(Spherical{});
  }
}

// ---- localizers: weight and its derivatives, as functions of s = u² and of the decay ----

template <class V> struct Weight {
  V value, by_s, by_decay;
};

enum class Localizer : int { rectangular, epanechnikov, gaussian, hilbert, smooth };
constexpr int N_LOCALIZERS = 5;

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
