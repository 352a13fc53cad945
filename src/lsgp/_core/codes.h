// SPDX-License-Identifier: BSD-3-Clause
// The points of a tree in a byte per input: what most searches of many inputs read instead.
//
// Leaves come in groups: all that are below one node, four levels up. A code is a point's place in
// the box of its group, in 255ths of its width; so a leaf's codes need no header of their own, and
// the boxes of a group's leaves, in codes too, are compared with a query in one go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "search.h"
#include "simd.h"
#include "tree.h"

namespace lsgp {

constexpr int GROUP_LEVELS = 4;
constexpr int64_t GROUP = 1 << GROUP_LEVELS;  // leaves per group, or fewer
constexpr double CODE_STEPS = 255;

// Which nodes are groups, and which leaves are theirs.
struct Groups {
  int64_t n_nodes, first, n_groups, first_deepest;
  int levels = 0;  // from a group to its deepest leaves
  LeafPositions positions;

  explicit Groups(int64_t n_leaves) : n_nodes(2 * n_leaves - 1), positions(n_leaves) {
    first_deepest = first = positions.first_deepest;
    for (; levels < GROUP_LEVELS && first > 0; levels++) first = (first - 1) / 2;
    n_groups = first + 1;  // a whole level
  }
  bool is_group(int64_t node) const { return node >= first; }
  // Position of the first leaf of the group at a node, and how many there are. The deepest come
  // first; the rest are one level up, and next to them.
  int64_t first_leaf(int64_t node, int64_t &count) const {
    const int64_t left = ((node + 1) << levels) - 1, most = int64_t(1) << levels;
    const int64_t n_deepest = std::max<int64_t>(std::min(n_nodes - left, most), 0);
    count = n_deepest + (most - n_deepest) / 2;
    return n_deepest ? positions(left) : positions((left - 1) / 2);
  }
};

// What a walk through the leaves of a tree reads, whose points have codes in m inputs.
struct CodedTree {
  Tree tree;
  const uint8_t *codes;       // (n_leaves, leaf_size)
  const uint8_t *leaf_boxes;  // (n_groups, 2, m, GROUP) least and largest code of each leaf
  const double *boxes;        // (n_nodes, 2, m) of the tree in these inputs
  int64_t m, leaf_size;

  const double *box(int64_t node) const { return boxes + node * 2 * m; }
};

// The code of a value in a box of this width; a value that is NaN, as padding is, has none.
inline bool encode(double value, double lower, double width, uint8_t &code) {
  const double share = width > 0 ? (value - lower) / width : 0.0;
  const bool is_value = share >= 0;
  code = is_value ? uint8_t(std::min(share, 1.0) * CODE_STEPS + 0.5) : 0;
  return is_value;
}

// The codes of a leaf in the box of its group, and its own box in codes.
// box: (2, m), of these inputs, (m,); null: of all
// codes: (m, L), written; least, largest: (m, GROUP), of which column i is written
inline void encode_leaf(const Tree &tree, int64_t leaf, const double *box, const int32_t *inputs,
                        int64_t m, int64_t i, uint8_t *codes, uint8_t *least, uint8_t *largest) {
  const int64_t L = tree.L;
  for (int64_t j = 0; j < m; j++) {
    const double *points = tree.leaves + (leaf * tree.d + (inputs ? inputs[j] : j)) * L;
    const double lower = box[j], width = box[m + j] - lower;
    uint8_t *code = codes + j * L;
    int low = 255, high = 0;
    for (int64_t l = 0; l < L; l++) {
      const bool is_point = encode(points[l], lower, width, code[l]);
      low = is_point && code[l] < low ? code[l] : low;
      high = is_point && code[l] > high ? code[l] : high;
    }
    least[j * GROUP + i] = uint8_t(low), largest[j * GROUP + i] = uint8_t(high);
  }
}

// boxes: (n_nodes, 2, m), of these inputs, (m,)
// codes: (n_leaves, m, L), leaf_boxes: as above, written
inline void encode_tree(const Tree &tree, const double *boxes, const int32_t *inputs, int64_t m,
                        uint8_t *codes, uint8_t *leaf_boxes) {
  const Groups groups(tree.n_leaves);
  std::fill(leaf_boxes, leaf_boxes + groups.n_groups * 2 * m * GROUP, 0);
  for (int64_t g = 0; g < groups.n_groups; g++) {
    int64_t count;
    const int64_t node = groups.first + g, first = groups.first_leaf(node, count);
    uint8_t *least = leaf_boxes + g * 2 * m * GROUP, *largest = least + m * GROUP;
    for (int64_t i = 0; i < count; i++)
      encode_leaf(tree, first + i, boxes + node * 2 * m, inputs, m, i,
                  codes + (first + i) * m * tree.L, least, largest);
  }
}

// ---- codes as a search sees them, exact or approximate: how far the boxes of a group are from a
// query, and in which order its leaves are looked at ----

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
  for (int64_t i = 0; i < (query.by_spread ? MANY_INPUTS : m); i++) {
    const int64_t j = query.by_spread ? query.by_spread[i] : i;
    const VecF w = splat(width[j]), q = splat(at[j]);
#pragma GCC unroll 4
    for (int v = 0; v < GROUP / W; v++) {
      const VecF gap = gap_to_box(load_codes(least + j * GROUP + v * W) * w,
                                  load_codes(largest + j * GROUP + v * W) * w, q);
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
