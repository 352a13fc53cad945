// SPDX-License-Identifier: BSD-3-Clause
// Approximate neighbor search: only leaves that are much nearer than the farthest neighbor.
//
// In many dimensions most leaves that an exact search has to open touch the ball of the neighbors
// at its rim, and hold none of them. Here a leaf is opened if the square of its distance is at
// most `reach` times that of the farthest neighbor so far: of a million uniform points of 16
// inputs, at a reach of 0.4, 700 leaves instead of 6,000 have 99 % of the 64 nearest. Leaves are
// opened nearest first, and points are compared three times: by half codes, a sixteenth of the
// bytes, which are scanned; by codes, where these sums leave a chance; and the last few, a few more
// than are wanted, by exact distances.
//
// What is found depends on nothing but the tree and the query.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "codes.h"
#include "leaf_walk.h"
#include "search.h"
#include "simd.h"

namespace lsgp {

// ---- half codes: the points of a tree in half a byte per input ----
//
// A half code is a point's place in the box of its group in fifteenths, so that inputs of two
// values, as of categories, have no error. There are sixteen squared differences from a query per
// input and group; they are tabulated, in a byte each, and an instruction looks up those of 32
// points at once. The whole codes, a point's next to each other, are for the few points that may be
// near by these sums.

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

// ---- the search ----

// The nearest points by their codes, nearly all of them.
template <bool SCALED> class NearSearch {
 public:
  // factor: (d,), or null where SCALED is false
  NearSearch(const HalfCodedTree &coded, double reach, const double *factor)
      : coded(coded), tree(coded.halves.tree), walk(coded.halves, reach, factor),
        regions(walk.groups),
        rounding(std::min(N_ERRORS * std::sqrt(float(tree.d) / 12), LEAST_SUM)),
        in_region(2 * tree.d) {}

  // Places in the tree of the n_kept nearest by their codes, in no order.
  const Rough *find(const Query &query, int64_t n_kept, int64_t &n_found) {
    opened.clear();
    walk.kept.start(n_kept, MANY_WAITING + BLOCK);
    walk.run(query, *this);
    return walk.kept.finish(n_found);
  }

 private:
  friend class LeafWalk<SCALED>;
  // A point has a chance if its sum is too large by no more than so many standard errors of it.
  // With 3 instead of 2, of a million normal points of 16 inputs a third more have one, and none
  // of them is a neighbor.
  static constexpr float N_ERRORS = 2;
  // What a sum may be at most, of the 255 that a byte holds, when a table is made, and the least
  // that it may come to as the limit sinks: then the table is too coarse, and made again.
  static constexpr float LARGEST_SUM = 250, LEAST_SUM = 100;
  // Points that wait for their codes to come from memory.
  static constexpr int64_t MANY_WAITING = 16;
  static constexpr int64_t N_AHEAD = 4;

  // A group: how sums of its half codes differ from squared distances.
  struct Opened {
    float bias;    // on average
    float near, far;  // variance, of points at distance 0, and what is added at distance 1
    float scale;   // of the sums
    int64_t size;  // inputs whose table is there
  };
  struct Waiting {
    uint32_t place, opened;
  };

  const HalfCodedTree coded;
  const Tree tree;
  LeafWalk<SCALED> walk;
  const Regions regions;
  const float rounding;  // of the numbers of tables, in a sum: N_ERRORS standard errors
  int64_t n_waiting = 0;
  Waiting waiting[MANY_WAITING + BLOCK];
  Rough near[MANY_WAITING + BLOCK];
  std::vector<Opened> opened;
  std::vector<uint8_t> tables;   // (n_opened, d, N_HALVES) and room for more
  std::vector<float> in_region;  // (2, d) metric

  // Squared distance by codes above which points are dropped.
  float limit() const { return walk.kept.limit; }

  // The children of a node, or the groups of a region.
  void push_below(int64_t node, const Query &query) {
    if (node < regions.first) return walk.push_children(node, query);
    const int64_t d = tree.d;
    float distances[GROUP];
    enter_box<SCALED>(tree.box(node), query, d, walk.unit, in_region.data());
    coded_box_distances(coded.group_boxes + (node - regions.first) * 2 * d * GROUP, query, d,
                        in_region.data(), distances);
    const int64_t first = regions.first_group(node);
    for (int64_t i = 0; i < regions.n_groups(); i++)
      if (distances[i] <= walk.kept.bound) walk.push(distances[i], first + i);
  }

  void enter(const float *width, float squares) {
    const int64_t d = tree.d, size = (int64_t(opened.size()) + 1) * d * N_HALVES;
    if (int64_t(tables.size()) < size) tables.resize(2 * size);
    float fourths = 0;
    for (int64_t j = 0; j < d; j++) fourths += width[j] * width[j] * width[j] * width[j];
    // The error e of a place along an input is anywhere in a half of width w: the mean of e^2 is a
    // twelfth of w^2, its variance w^4 / 180; that of 2 e times a difference depends on differences,
    // which are taken to be as large, in proportion, as widths are.
    constexpr float share = CODES_PER_HALF * CODES_PER_HALF;
    const float twelfth = share / 12;
    opened.push_back({twelfth * squares, share * share / 180 * fourths,
                      squares > 0 ? 4 * twelfth * fourths / squares : 0.0f, 0, 0});
  }

  void end_scan(const Query &query) { compare_codes(query); }

  void scan(const NearLeaf &leaf, const Query &query) {
    for (int64_t begin = 0; begin < tree.L; begin += BLOCK) {
      const int64_t first = leaf.leaf * tree.L + begin;
      uint64_t passed =
          limit() < float(INFINITE) ? with_a_chance(first, leaf.opened, query) : ~uint64_t(0);
      for (; passed; passed &= passed - 1) {
        const int64_t place = first + __builtin_ctzll(passed);
        __builtin_prefetch(coded.points + place * tree.d);
        __builtin_prefetch(tree.order + place);
        waiting[n_waiting++] = {uint32_t(place), leaf.opened};
      }
      if (n_waiting >= MANY_WAITING || limit() == float(INFINITE)) compare_codes(query);
    }
  }

  // Which points of a block may be near enough, by their half codes: bit l is that of first + l.
  uint64_t with_a_chance(int64_t first, uint32_t number, const Query &query) {
    const int64_t d = tree.d;
    Opened &group = opened[number];
    const float error = std::sqrt(group.near + limit() * group.far);
    const float farthest = limit() + group.bias + N_ERRORS * error;
    if (!(farthest * group.scale > LEAST_SUM)) {
      group.scale = (LARGEST_SUM - rounding) / std::max(farthest, 1e-30f);
      group.size = 0;
    }
    const float most = std::min(farthest * group.scale + rounding, LARGEST_SUM);
    const uint8_t *halves = coded.halves.codes + first * d / 2;
    const uint8_t *table = tables.data() + number * d * N_HALVES;
    HalfSums sums;
    // Of many inputs the widest first, until no point is left: see `scan_leaf`.
    const int64_t size = query.by_spread ? N_AT_A_TIME : d;
    for (int64_t i = 0;;) {
      const int64_t stop = std::min(i + size, d);
      if (group.size < stop) extend_table(number, stop, query);
      if (query.by_spread)
        for (; i < stop; i++)
          sums.add(halves + query.by_spread[i] * (BLOCK / 2), table + i * N_HALVES);
      else
        for (; i < stop; i++) sums.add(halves + i * (BLOCK / 2), table + i * N_HALVES);
      const uint64_t passed = sums.at_most(uint8_t(most));
      if (i == d || !passed) return passed;
    }
  }

  // The table of a group for as many inputs, in the order in which they are looked at.
  void extend_table(uint32_t number, int64_t stop, const Query &query) {
    const int64_t d = tree.d;
    Opened &group = opened[number];
    const float *width = walk.metrics() + number * 2 * d, *at = width + d;
    uint8_t *table = tables.data() + number * d * N_HALVES;
    const float scale = std::sqrt(group.scale);
    for (int64_t i = group.size; i < stop; i++) {
      const int64_t j = query.by_spread ? query.by_spread[i] : i;
      // Multiples of the golden ratio are spread evenly, however many there are.
      const float turn = float(i) * 0.618034f;
      tabulate(CODES_PER_HALF * width[j] * scale, at[j] * scale, turn - std::floor(turn),
               table + i * N_HALVES);
    }
    group.size = stop;
  }

  // Of the points that have a chance, those that are near enough by their codes.
  void compare_codes(const Query &query) {
    const int64_t d = tree.d, L = tree.L;
    int64_t n_near = 0;
    for (int64_t i = 0; i < n_waiting; i++) {  // without a branch that nobody could predict
      const uint32_t place = waiting[i].place;
      const float *own = walk.metrics() + waiting[i].opened * 2 * d;
      const float distance = coded_distance(coded.points + place * d, own, d);
      near[n_near] = rough_of(distance, place);
      n_near += distance < limit();
    }
    n_waiting = 0;
    for (int64_t i = 0; i < n_near; i++) {
      const int64_t place = uint32_t(near[i]);
      const int32_t row = tree.order[place];
      if (query.admits(row, tree.point(place), d, L))
        walk.kept.add(near[i]);
    }
    walk.kept.some_added();
  }
};

// Arguments as of find_nearest. Where fewer than k are found, the exact search has the last word.
template <bool SCALED>
inline void find_near(const HalfCodedTree &coded, double reach, const double *queries, int64_t q,
                      const double *factor, int64_t k, const Exclusions &exclusions,
                      int32_t *neighbors, double *distances) {
  const Tree &tree = coded.halves.tree;
  const LeafPositions positions(tree.n_leaves);
  const int64_t n_wanted = std::min(k, tree.n_leaves * tree.L);
  const std::vector<int32_t> by_spread = inputs_by_spread(tree, factor);
  const int32_t *order = by_spread.empty() ? nullptr : by_spread.data();
  NearSearch<SCALED> search_codes(coded, reach, factor);
  // As many more as the codes, in 16 inputs, may confuse.
  const int64_t n_kept = n_wanted + n_wanted / 8 + 8;
  NearestFound exact;
  std::vector<Candidate> nearest, scratch;
  for (const int64_t i : in_tree_order<SCALED>(tree, queries, q, factor, order)) {
    const Query query(queries, i, tree.d, factor, exclusions, order);
    int64_t count;
    const Rough *found = search_codes.find(query, n_kept, count);
    if (count < n_wanted) {
      exact.start(n_wanted, tree.d, tree.L);
      search<SCALED>(tree, positions, query, exact);
      count = exact.finish();
      write_neighbors(exact.data(), count, i, k, neighbors, distances);
      continue;
    }
    nearest.resize(count + TOGETHER), scratch.resize(count);
    for (int64_t c = 0; c < count; c += TOGETHER) {
      for (int64_t e = c + 2 * TOGETHER; e < std::min(c + 3 * TOGETHER, count); e++) {
        const double *point = tree.point(uint32_t(found[e]));
        for (int64_t j = 0; j < tree.d; j++) __builtin_prefetch(point + j * tree.L);
      }
      measure<SCALED>(tree, query, found + c, count - c, &nearest[c]);
    }
    sort(nearest.data(), count, scratch.data());
    write_neighbors(nearest.data(), count, i, k, neighbors, distances);
  }
}

}  // namespace lsgp
