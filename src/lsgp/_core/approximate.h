// SPDX-License-Identifier: BSD-3-Clause
// Approximate neighbor search: only leaves that are much nearer than the farthest neighbor.
//
// In many dimensions most leaves that an exact search has to open touch the ball of the neighbors
// at its rim, and hold none of them. Here a leaf is opened if the square of its distance is at
// most `reach` times that of the farthest neighbor so far: of a million uniform points of 16
// inputs, at a reach of 0.4, 700 leaves instead of 6,000 have 99 % of the 64 nearest. Leaves are
// opened nearest first, and points are compared by their codes, an eighth of the bytes; a few more
// than are wanted are kept, and the last word is that of exact distances.
//
// What is found depends on nothing but the tree and the query.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "candidates.h"
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

inline unsigned true_lanes(Simd<float>::Int mask) {
#if defined(__AVX512DQ__)
  return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__)
  return _mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)mask);
#else
  unsigned bits = 0;
  for (int l = 0; l < Simd<float>::W; l++) bits |= unsigned(mask[l] & 1) << l;
  return bits;
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

template <bool SCALED> class ApproximateSearch {
 public:
  ApproximateSearch(const CodedTree &coded, int64_t k, double reach, const double *factor)
      : tree(coded.tree), codes(coded.codes), bounds(coded.bounds), groups(tree.n_leaves),
        // As many more as the codes, in 16 inputs, may confuse.
        n_kept(k + k / 8 + 8), patience(n_kept + std::max<int64_t>(n_kept / 2, 32)), reach(reach) {
    found.resize(patience + tree.L);
    scratch.resize(patience + tree.L);
    // Inputs divided by the widest: squares of single precision are then finite numbers.
    double widest = 0;
    for (int64_t j = 0; j < tree.d; j++) {
      const double width = tree.box(0)[tree.d + j] - tree.box(0)[j];
      widest = std::max(widest, SCALED ? width * factor[j] : width);
    }
    unit = widest > 0 && std::isfinite(1 / widest) ? 1 / widest : 1.0;
  }

  // Places in the tree of what it found, nearest first by their codes.
  const Rough *find(const Query &query, int64_t &n_found) {
    start();
    open_first_groups(query);
    collect_leaves(query);
    scan_leaves(query);
    if (count > n_kept) keep_nearest();
    n_found = count;
    return found.data();
  }

 private:
  static constexpr int W = Simd<float>::W;
  // Groups that are scanned before others are looked at: what they hold tells which.
  static constexpr int N_FIRST = 8;
  static constexpr int N_BINS = 64;

  struct Leaf {
    float distance;
    uint32_t opened;  // number of its group among those that were opened
    int64_t leaf;
  };
  struct Node {
    double distance;
    int64_t node;
    bool operator<(const Node &other) const {  // as a heap, the nearest is the first
      return distance > other.distance || (distance == other.distance && node > other.node);
    }
  };

  const Tree tree;
  const uint8_t *codes, *bounds;
  const Groups groups;
  const int64_t n_kept, patience;
  const double reach;
  double unit;
  int64_t count = 0;
  float limit = 0, bound = 0;  // squared distances above which points and boxes are dropped
  std::vector<Rough> found, scratch;
  std::vector<Node> heap, to_open;
  std::vector<Leaf> leaves, sorted;
  std::vector<float> metric;  // (n_opened, 2, d) width of a code, and the query's place
  uint32_t n_opened = 0;

  void start() {
    count = 0, limit = bound = float(INFINITE), n_opened = 0;
    heap.clear(), to_open.clear(), leaves.clear(), metric.clear();
  }

  void keep_nearest() {
    limit = distance_of(select(found.data(), count, n_kept, scratch.data()));
    count = n_kept;
    bound = float(reach * limit);
  }

  double distance_to(int64_t node, const Query &query) const {
    return box_distance<SCALED>(tree.box(node), query, tree.d) * unit * unit;
  }

  // Best first, until what is found says how far to go.
  void open_first_groups(const Query &query) {
    heap.push_back({0.0, 0});
    for (int n_scanned = 0; !heap.empty() && (n_scanned < N_FIRST || limit == float(INFINITE));) {
      const int64_t node = heap.front().node;
      if (!(heap.front().distance <= bound)) break;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      if (groups.is_group(node)) {
        open(node, query);
        scan_leaves(query);
        leaves.clear();
        n_scanned++;
        continue;
      }
      for (int64_t child = 2 * node + 1; child <= 2 * node + 2; child++) {
        heap.push_back({distance_to(child, query), child});
        std::push_heap(heap.begin(), heap.end());
      }
    }
  }

  // All other leaves that are near enough.
  void collect_leaves(const Query &query) {
    while (!heap.empty()) {
      const Node top = heap.back();
      heap.pop_back();
      if (!(top.distance <= bound)) continue;
      if (groups.is_group(top.node)) {
        to_open.push_back(top);
        continue;
      }
      for (int64_t child = 2 * top.node + 1; child <= 2 * top.node + 2; child++)
        heap.push_back({distance_to(child, query), child});
    }
    for (size_t i = 0; i < to_open.size(); i++) {
      if (i + 2 < to_open.size()) {
        const uint8_t *next = bounds + (to_open[i + 2].node - groups.first) * 2 * tree.d * GROUP;
        for (int64_t b = 0; b < 2 * tree.d * GROUP; b += 64) __builtin_prefetch(next + b);
      }
      open(to_open[i].node, query);
    }
  }

  // Which leaves of a group are near enough.
  void open(int64_t node, const Query &query) {
    const int64_t d = tree.d;
    const double *lower = tree.box(node), *upper = lower + d;
    metric.resize((n_opened + 1) * 2 * d);
    float *width = metric.data() + n_opened * 2 * d, *at = width + d;
    constexpr double step = 1 / CODE_STEPS;
    for (int64_t j = 0; j < d; j++) {
      const double f = SCALED ? query.factor[j] * unit : unit;
      width[j] = float((upper[j] - lower[j]) * (f * step));
      at[j] = float((query.z[j] - lower[j]) * f);
    }
    const uint8_t *least = bounds + (node - groups.first) * 2 * d * GROUP;
    const uint8_t *largest = least + d * GROUP;
    VecF sums[GROUP / W] = {};
    const VecF zero = {};
    for (int64_t i = 0; i < (query.by_spread ? MANY_INPUTS : d); i++) {
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
    float distances[GROUP];
    std::memcpy(distances, sums, sizeof distances);
    int64_t n_leaves;
    const int64_t first = groups.first_leaf(node, n_leaves);
    for (int64_t i = 0; i < n_leaves; i++)
      if (distances[i] <= bound) leaves.push_back({distances[i], n_opened, first + i});
    n_opened++;
  }

  // Nearest first, as far as bins of equal width tell.
  void scan_leaves(const Query &query) {
    float farthest = 0;
    for (const Leaf &leaf : leaves) farthest = std::max(farthest, leaf.distance);
    const float scale = farthest > 0 ? (N_BINS - 1) / farthest : 0.0f;
    int64_t starts[N_BINS + 1] = {};
    for (const Leaf &leaf : leaves) starts[int(leaf.distance * scale) + 1]++;
    for (int b = 0; b < N_BINS; b++) starts[b + 1] += starts[b];
    sorted.resize(leaves.size());
    for (const Leaf &leaf : leaves) sorted[starts[int(leaf.distance * scale)]++] = leaf;
    for (size_t i = 0; i < sorted.size(); i++) {
      if (i + 2 < sorted.size()) {
        const uint8_t *next = codes + sorted[i + 2].leaf * tree.d * tree.L;
        for (int64_t b = 0; b < tree.d * tree.L; b += 64) __builtin_prefetch(next + b);
      }
      if (sorted[i].distance <= bound) scan(sorted[i], query);
    }
  }

  void scan(const Leaf &leaf, const Query &query) {
    constexpr int U = W == 4 ? 4 : 64 / W < 8 ? 64 / W : 8;  // vectors in flight
    const int64_t d = tree.d, L = tree.L;
    const float *width = metric.data() + leaf.opened * 2 * d, *at = width + d;
    const uint8_t *code = codes + leaf.leaf * d * L;
    const int32_t *order = tree.order + leaf.leaf * L;
    for (int64_t begin = 0; begin < L; begin += U * W) {
      VecF sums[U] = {};
      uint64_t passed = 0;
      // Of many inputs the widest first, until no point is left: see `add_by_spread`.
      const int64_t size = query.by_spread ? N_AT_A_TIME : d;
      for (int64_t i = 0; i < d;) {
        for (const int64_t stop = std::min(i + size, d); i < stop; i++) {
          const int64_t j = query.by_spread ? query.by_spread[i] : i;
          const VecF w = splat(width[j]), q = splat(at[j]);
#pragma GCC unroll 8
          for (int u = 0; u < U; u++) {
            const VecF gap = load_codes(code + j * L + begin + u * W) * w - q;
            sums[u] += gap * gap;
          }
        }
        passed = 0;
#pragma GCC unroll 8
        for (int u = 0; u < U; u++)
          passed |= uint64_t(true_lanes(sums[u] < splat(limit))) << (u * W);
        if (!passed) break;
      }
      float distances[U * W];
      std::memcpy(distances, sums, sizeof distances);
      for (; passed; passed &= passed - 1) {
        const int l = __builtin_ctzll(passed);
        const int64_t place = leaf.leaf * L + begin + l;
        const int32_t row = order[begin + l];
        const double *point = tree.leaves + leaf.leaf * d * L + begin + l;
        if (row >= 0 && query.admits(row, point, d, L))
          found[count++] = rough_of(distances[l], uint32_t(place));
      }
    }
    if (count >= patience || (count >= n_kept && limit == float(INFINITE))) keep_nearest();
  }
};

// The square of a point's distance, as the exact search rounds it.
template <bool SCALED>
inline double exact_distance(const Tree &tree, const Query &query, int64_t place) {
  const double *point = tree.leaves + place / tree.L * tree.d * tree.L + place % tree.L;
  double sum = 0;
  for (int64_t j = 0; j < tree.d; j++) {
    double gap = point[j * tree.L] - query.z[j];
    if (SCALED) gap = rounded(gap * query.factor[j]);
    sum += rounded(gap * gap);
  }
  return sum;
}

// Arguments as of find_nearest. Where fewer than k are found, the exact search has the last word.
template <bool SCALED>
inline void find_near(const CodedTree &coded, double reach, const double *queries, int64_t q,
                      const double *factor, int64_t k, const Exclusions &exclusions,
                      int32_t *neighbors, double *distances) {
  const Tree &tree = coded.tree;
  const LeafPositions positions(tree.n_leaves);
  const int64_t n_wanted = std::min(k, tree.n_leaves * tree.L);
  const std::vector<int32_t> by_spread = inputs_by_spread(tree, factor);
  const int32_t *order = by_spread.empty() ? nullptr : by_spread.data();
  // Queries in the order of the tree: consecutive ones scan the same leaves.
  std::vector<std::pair<int64_t, int64_t>> sorted(q);
  for (int64_t i = 0; i < q; i++) {
    const Query query(queries, i, tree.d, factor, exclusions, order);
    sorted[i] = {home_leaf<SCALED>(tree, positions, query), i};
  }
  std::sort(sorted.begin(), sorted.end());

  ApproximateSearch<SCALED> search_codes(coded, n_wanted, reach, factor);
  NearestFound exact;
  std::vector<Candidate> nearest, scratch;
  for (const auto &[leaf, i] : sorted) {
    const Query query(queries, i, tree.d, factor, exclusions, order);
    int64_t count;
    const Rough *found = search_codes.find(query, count);
    nearest.resize(count), scratch.resize(count);
    for (int64_t c = 0; c < count; c++) {
      const int64_t place = uint32_t(found[c]);
      nearest[c] = candidate_of(exact_distance<SCALED>(tree, query, place), tree.order[place]);
    }
    if (count < n_wanted) {
      exact.start(n_wanted, tree.d, tree.L);
      search<SCALED>(tree, positions, query, exact);
      count = exact.finish();
      nearest.resize(count);
      for (int64_t c = 0; c < count; c++) nearest[c] = exact[c];
    } else {
      sort(nearest.data(), count, scratch.data());
    }
    for (int64_t r = 0; r < k; r++) {
      neighbors[i * k + r] = r < count ? row_of(nearest[r]) : -1;
      if (distances) distances[i * k + r] = r < count ? distance_of(nearest[r]) : INFINITE;
    }
  }
}

}  // namespace lsgp
