// SPDX-License-Identifier: BSD-3-Clause
// The points of a tree in half a byte per input: what an approximate search scans.
//
// A half code is a point's place in the box of its group in fifteenths, so that inputs of two
// values, as of categories, have no error. There are sixteen squared differences from a query per
// input and group; they are tabulated, in a byte each, and an instruction looks up those of 32
// points at once. The whole codes, a point's next to each other, are for the few points that may be
// near by these sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codes.h"
#include "simd.h"

namespace lsgp {

constexpr int64_t BLOCK = LEAF_MULTIPLE;  // points whose half codes are in one place
constexpr int N_HALVES = 16;
constexpr int CODES_PER_HALF = int(CODE_STEPS) / (N_HALVES - 1);

inline uint8_t half_of(uint8_t code) {
  return uint8_t((code + CODES_PER_HALF / 2) / CODES_PER_HALF);
}

// Groups come in regions, as leaves come in groups: all that are below one node, four levels up.
struct Regions {
  int64_t first, n_regions;
  int levels = 0;  // from a region to its groups

  explicit Regions(const Groups &groups) : first(groups.first) {
    for (; levels < GROUP_LEVELS && first > 0; levels++) first = (first - 1) / 2;
    n_regions = first + 1;
  }
  int64_t n_groups() const { return int64_t(1) << levels; }
  int64_t first_group(int64_t node) const { return ((node + 1) << levels) - 1; }
};

struct HalfCodedTree {
  CodedTree halves;  // codes: (n_leaves * L / BLOCK, d, BLOCK / 2), points i and i + BLOCK / 2
  const uint8_t *points;       // (n_leaves, L, d)
  const uint8_t *group_boxes;  // (n_regions, 2, d, GROUP), in codes of the region's box
};

// halves, points, leaf_boxes, group_boxes: as above, written
inline void encode_halves(const Tree &tree, uint8_t *halves, uint8_t *points, uint8_t *leaf_boxes,
                          uint8_t *group_boxes) {
  const Groups groups(tree.n_leaves);
  const Regions regions(groups);
  const int64_t d = tree.d, L = tree.L;
  std::vector<uint8_t> codes(d * L);
  std::fill(leaf_boxes, leaf_boxes + groups.n_groups * 2 * d * GROUP, 0);
  std::fill(group_boxes, group_boxes + regions.n_regions * 2 * d * GROUP, 0);
  for (int64_t g = 0; g < groups.n_groups; g++) {
    int64_t count;
    const int64_t node = groups.first + g, first = groups.first_leaf(node, count);
    uint8_t *least = leaf_boxes + g * 2 * d * GROUP, *largest = least + d * GROUP;
    for (int64_t i = 0; i < count; i++) {
      const int64_t leaf = first + i;
      encode_leaf(tree, leaf, tree.box(node), nullptr, d, i, codes.data(), least, largest);
      for (int64_t l = 0; l < L; l++)
        for (int64_t j = 0; j < d; j++) points[(leaf * L + l) * d + j] = codes[j * L + l];
      for (int64_t begin = 0; begin < L; begin += BLOCK)
        for (int64_t j = 0; j < d; j++)
          for (int64_t l = 0; l < BLOCK / 2; l++) {
            const uint8_t *pair = codes.data() + j * L + begin + l;
            halves[(leaf * L + begin) * d / 2 + j * (BLOCK / 2) + l] =
                uint8_t(half_of(pair[0]) + half_of(pair[BLOCK / 2]) * N_HALVES);
          }
    }
  }
  for (int64_t r = 0; r < regions.n_regions; r++) {
    const double *box = tree.box(regions.first + r);
    uint8_t *corners = group_boxes + r * 2 * d * GROUP;
    for (int64_t i = 0; i < regions.n_groups(); i++) {
      const double *inner = tree.box(regions.first_group(regions.first + r) + i);
      for (int64_t c = 0; c < 2 * d; c++)
        encode(inner[c], box[c % d], box[d + c % d] - box[c % d], corners[c * GROUP + i]);
    }
  }
}

// The squared differences of all halves of an input, rounded; 255 and more are one.
// width: of a half; at: the query's distance from the first one
// offset: below 1, added before the rest is cut off. Another one for each input: where inputs have
// few values, their differences are the same number, and would all be rounded the same way.
// table: (N_HALVES,), written
inline void tabulate(float width, float at, float offset, uint8_t *table) {
#if defined(__AVX2__)
  const __m256 w = _mm256_set1_ps(width), q = _mm256_set1_ps(at), most = _mm256_set1_ps(255);
  __m256 low = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), high = _mm256_add_ps(low, _mm256_set1_ps(8));
  low = _mm256_fmsub_ps(low, w, q), high = _mm256_fmsub_ps(high, w, q);
  // What is not a number comes second.
  const __m256 more = _mm256_set1_ps(offset);
  low = _mm256_min_ps(_mm256_fmadd_ps(low, low, more), most);
  high = _mm256_min_ps(_mm256_fmadd_ps(high, high, more), most);
  __m256i words = _mm256_packs_epi32(_mm256_cvttps_epi32(low), _mm256_cvttps_epi32(high));
  words = _mm256_permute4x64_epi64(words, 0xd8);  // the halves of each came side by side
  _mm_storeu_si128((__m128i *)table, _mm_packus_epi16(_mm256_castsi256_si128(words),
                                                      _mm256_extracti128_si256(words, 1)));
#else
  for (int h = 0; h < N_HALVES; h++) {
    const float gap = float(h) * width - at, square = gap * gap + offset;
    table[h] = uint8_t(int(square < 255.0f ? square : 255.0f));
  }
#endif
}

// Sums of a block of points.
class HalfSums {
 public:
  // halves: (BLOCK / 2,) of an input; table: (N_HALVES,)
  void add(const uint8_t *halves, const uint8_t *table) {
#if defined(__AVX2__)
    const __m256i mask = _mm256_set1_epi8(N_HALVES - 1);
    const __m256i squares = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    const __m256i low = _mm256_loadu_si256((const __m256i *)halves);
    const __m256i high = _mm256_srli_epi16(low, 4);
    first = _mm256_adds_epu8(first, _mm256_shuffle_epi8(squares, _mm256_and_si256(low, mask)));
    second = _mm256_adds_epu8(second, _mm256_shuffle_epi8(squares, _mm256_and_si256(high, mask)));
#else
    for (int l = 0; l < BLOCK / 2; l++) {
      sums[l] += table[halves[l] % N_HALVES];
      sums[l + BLOCK / 2] += table[halves[l] / N_HALVES];
    }
#endif
  }
  // Bit l is set where the sum of point l is no more than this, which is less than 255.
  uint64_t at_most(uint8_t most) const {
#if defined(__AVX2__)
    const __m256i m = _mm256_set1_epi8(char(most));
    const __m256i low = _mm256_cmpeq_epi8(_mm256_min_epu8(first, m), first);
    const __m256i high = _mm256_cmpeq_epi8(_mm256_min_epu8(second, m), second);
    return uint64_t(uint32_t(_mm256_movemask_epi8(high))) << 32 |
           uint32_t(_mm256_movemask_epi8(low));
#else
    uint64_t bits = 0;
    for (int l = 0; l < BLOCK; l++) bits |= uint64_t(sums[l] <= most) << l;
    return bits;
#endif
  }

 private:
#if defined(__AVX2__)
  __m256i first = _mm256_setzero_si256(), second = _mm256_setzero_si256();
  static_assert(BLOCK == 64, "half a block fills a register");
#else
  uint32_t sums[BLOCK] = {};
#endif
};

}  // namespace lsgp
