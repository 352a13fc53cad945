// SPDX-License-Identifier: BSD-3-Clause
// Boxes in codes, as a search sees them: how far those of a group are from a query, and in which
// order its leaves are looked at. Shared by exact and approximate searches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "codes.h"
#include "query.h"
#include "search.h"
#include "simd.h"

namespace lsgp {

// Bytes as floats, a vector of them.
inline VecF load_codes(const uint8_t *p) {
#if defined(__AVX512F__)
  return (VecF)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif defined(__AVX2__)
  return (VecF)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#else
  VecF x;
  for (int l = 0; l < Simd<float>::W; l++) x[l] = p[l];
  return x;
#endif
}

// A squared distance and a place, packed as in `Candidate`.
typedef uint64_t Rough;

inline Rough rough_of(float distance, uint32_t place) {
  uint32_t bits;
  std::memcpy(&bits, &distance, sizeof bits);
  return Rough(bits) << 32 | place;
}
inline float distance_of(Rough rough) {
  const uint32_t bits = uint32_t(rough >> 32);
  float distance;
  std::memcpy(&distance, &bits, sizeof distance);
  return distance;
}

// What distances by codes are multiplied by: the inverse width of the widest input, so that
// squares of single precision are finite numbers.
// box: (2, m) of all points; factor: (m,), or null
inline double unit_of_codes(const double *box, int64_t m, const double *factor) {
  double widest = 0;
  for (int64_t j = 0; j < m; j++) {
    const double width = box[m + j] - box[j];
    widest = std::max(widest, factor ? width * factor[j] : width);
  }
  return widest > 0 && std::isfinite(1 / widest) ? 1 / widest : 1.0;
}

// The metric in a box: the width of a code, and the query's place.
// box: (2, m); metric: (2, m), written. Returns the square of the diagonal of a code.
template <bool SCALED>
inline float enter_box(const double *box, const Query &query, int64_t m, double unit,
                       float *metric) {
  const double *lower = box, *upper = box + m;
  float *width = metric, *at = metric + m;
  constexpr double step = 1 / CODE_STEPS;
  float squared_diagonal = 0;
  for (int64_t j = 0; j < m; j++) {
    const double f = SCALED ? query.factor[j] * unit : unit;
    width[j] = float((upper[j] - lower[j]) * (f * step));
    at[j] = float((query.z[j] - lower[j]) * f);
    squared_diagonal += width[j] * width[j];
  }
  return squared_diagonal;
}

// The squared distance of a point in codes. codes: (m,); metric: (2, m)
inline float coded_distance(const uint8_t *codes, const float *metric, int64_t m) {
  const float *width = metric, *at = metric + m;
  float sum = 0;
  int64_t j = 0;
#if defined(__AVX2__)
  // Eight at a time, however wide registers are: points have few inputs.
  __m256 sums = _mm256_setzero_ps();
  for (; j + 8 <= m; j += 8) {
    const __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(codes + j)));
    const __m256 gap = _mm256_fmsub_ps(_mm256_cvtepi32_ps(code), _mm256_loadu_ps(width + j),
                                       _mm256_loadu_ps(at + j));
    sums = _mm256_fmadd_ps(gap, gap, sums);
  }
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  sum = _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
#endif
  for (; j < m; j++) {
    const float gap = float(codes[j]) * width[j] - at[j];
    sum += gap * gap;
  }
  return sum;
}

// The squared distances of a group of boxes in codes.
// bounds: (2, m, GROUP); metric: (2, m); distances: (GROUP,), written
inline void coded_box_distances(const uint8_t *bounds, const Query &query, int64_t m,
                                const float *metric, float *distances) {
  constexpr int W = Simd<float>::W;
  const float *width = metric, *at = metric + m;
  const uint8_t *least = bounds, *largest = bounds + m * GROUP;
  VecF sums[GROUP / W] = {};
  const VecF zero = {};
  for (int64_t i = 0; i < (query.by_spread ? MANY_INPUTS : m); i++) {
    const int64_t j = query.by_spread ? query.by_spread[i] : i;
    const VecF w = splat(width[j]), q = splat(at[j]);
#pragma GCC unroll 4
    for (int v = 0; v < GROUP / W; v++) {
      const VecF below = load_codes(least + j * GROUP + v * W) * w - q;
      const VecF above = q - load_codes(largest + j * GROUP + v * W) * w;
      VecF gap = below > above ? below : above;
      gap = gap > zero ? gap : zero;
      sums[v] += gap * gap;
    }
  }
  std::memcpy(distances, sums, sizeof sums);
}

// A leaf that is near enough.
struct NearLeaf {
  float distance;
  uint32_t opened;  // number of its group among those that were opened
  uint32_t leaf;
};

// Leaves that are near enough, and the same in the order of their distance.
class NearLeaves {
 public:
  void clear() { count = 0; }
  int64_t size() const { return count; }
  const NearLeaf &operator[](int64_t i) const { return sorted[i]; }

  // Appends those of n leaves, numbered from first, that are no farther than the bound; not those
  // whose distance overflows, of queries that are very far away.
  void add(const float *distances, int64_t n, uint32_t opened, int64_t first, float bound) {
    if (count + n > int64_t(all.size())) all.resize(2 * (count + n)), sorted.resize(all.size());
    const float most = std::min(bound, std::numeric_limits<float>::max());
    for (int64_t i = 0; i < n; i++) {  // without a branch that nobody could predict
      all[count] = {distances[i], opened, uint32_t(first + i)};
      count += distances[i] <= most;
    }
  }

  // Nearest first, as far as bins of equal width tell.
  void sort() {
    constexpr int MOST_BINS = 64;
    const int n_bins = count > MOST_BINS ? MOST_BINS : 16;
    float farthest = 0;
    for (int64_t i = 0; i < count; i++) farthest = std::max(farthest, all[i].distance);
    const float scale = farthest > 1e-30f ? float(n_bins - 1) / farthest : 0.0f;
    int64_t starts[MOST_BINS + 1] = {};
    for (int64_t i = 0; i < count; i++) starts[int(all[i].distance * scale) + 1]++;
    for (int b = 0; b < n_bins; b++) starts[b + 1] += starts[b];
    for (int64_t i = 0; i < count; i++)
      sorted[starts[int(all[i].distance * scale)]++] = all[i];
  }

 private:
  std::vector<NearLeaf> all, sorted;  // of which count are there
  int64_t count = 0;
};

// Part of the tree that is yet to be looked at.
struct FarNode {
  double distance;
  int64_t node;
  bool operator<(const FarNode &other) const {  // as a heap, the nearest is the first
    return distance > other.distance || (distance == other.distance && node > other.node);
  }
};

inline void prefetch_bytes(const void *p, int64_t size) {
  for (int64_t b = 0; b < size; b += 64) __builtin_prefetch((const char *)p + b);
}

}  // namespace lsgp
