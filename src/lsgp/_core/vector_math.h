// SPDX-License-Identifier: BSD-3-Clause
// What formulas.h asks of a number, for vectors: exp here, sqrt and Element in simd.h.
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

}  // namespace lsgp
