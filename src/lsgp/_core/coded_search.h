// SPDX-License-Identifier: BSD-3-Clause
// The nearest points by their codes: what an exact search of many inputs asks first.
//
// Nearest leaves first: a few groups of them tell how far to go, then all others are collected that
// are near enough, and scanned in the order of their distance. A leaf is near enough if it is no
// farther than the farthest point kept so far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "candidates.h"
#include "coded_boxes.h"
#include "codes.h"
#include "query.h"
#include "search.h"
#include "simd.h"

namespace lsgp {

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

template <bool SCALED> class CodedSearch {
 public:
  const double unit;  // what distances are multiplied by here
  // Squared distance by codes above which points and boxes were dropped, of the last search.
  float limit = 0;
  // The most by which codes moved a point or a box, in all that was opened.
  float error = 0;

  // factor: (m,) of the inputs that have codes, or null where SCALED is false
  CodedSearch(const CodedTree &coded, const double *factor)
      : unit(unit_of_codes(coded.box(0), coded.m, SCALED ? factor : nullptr)), coded(coded),
        tree(coded.tree), groups(tree.n_leaves) {}

  // Places in the tree of the n_kept nearest by their codes, in no order.
  // query: in the inputs that have codes; whole: in all, which tells what it admits
  const Rough *find(const Query &query, const Query &whole_, int64_t n_kept_, int64_t &n_found) {
    start(n_kept_);
    whole = &whole_;
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

  const CodedTree coded;
  const Tree tree;
  const Groups groups;
  const Query *whole = nullptr;
  int64_t n_kept = 0, patience = 0, count = 0;
  std::vector<Rough> found, scratch;
  std::vector<FarNode> heap, to_open;
  NearLeaves leaves;
  std::vector<float> metric;  // (n_opened, 2, m) width of a code, and the query's place
  uint32_t n_opened = 0;

  void start(int64_t n_kept_) {
    n_kept = n_kept_, patience = n_kept + std::max<int64_t>(n_kept / 2, 32);
    found.resize(patience + tree.L);
    scratch.resize(patience + tree.L);
    count = 0, limit = float(INFINITE), n_opened = 0, error = 0;
    heap.clear(), to_open.clear(), leaves.clear(), metric.clear();
  }

  void keep_nearest() {
    limit = distance_of(select(found.data(), count, n_kept, scratch.data()));
    count = n_kept;
  }

  double distance_to(int64_t node, const Query &query) const {
    return box_distance<SCALED>(coded.box(node), query, coded.m) * unit * unit;
  }

  // Best first, until what is found says how far to go.
  void open_first_groups(const Query &query) {
    heap.push_back({0.0, 0});
    for (int n_scanned = 0; !heap.empty() && (n_scanned < N_FIRST || limit == float(INFINITE));) {
      const int64_t node = heap.front().node;
      if (!(heap.front().distance <= limit)) break;
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
      const FarNode top = heap.back();
      heap.pop_back();
      if (!(top.distance <= limit)) continue;
      if (groups.is_group(top.node)) {
        to_open.push_back(top);
        continue;
      }
      for (int64_t child = 2 * top.node + 1; child <= 2 * top.node + 2; child++)
        heap.push_back({distance_to(child, query), child});
    }
    for (size_t i = 0; i < to_open.size(); i++) {
      if (i + 2 < to_open.size()) {
        const int64_t size = 2 * coded.m * GROUP;
        prefetch_bytes(coded.bounds + (to_open[i + 2].node - groups.first) * size, size);
      }
      open(to_open[i].node, query);
    }
  }

  // Which leaves of a group are near enough.
  void open(int64_t node, const Query &query) {
    const int64_t m = coded.m;
    metric.resize((n_opened + 1) * 2 * m);
    float *own = metric.data() + n_opened * 2 * m;
    const float squared_diagonal = enter_box<SCALED>(coded.box(node), query, m, unit, own);
    error = std::max(error, 0.5f * std::sqrt(squared_diagonal));  // codes are rounded
    float distances[GROUP];
    coded_box_distances(coded.bounds + (node - groups.first) * 2 * m * GROUP, query, m, own,
                        distances);
    int64_t n_leaves;
    const int64_t first = groups.first_leaf(node, n_leaves);
    leaves.add(distances, n_leaves, n_opened++, first, limit);
  }

  void scan_leaves(const Query &query) {
    leaves.sort();
    const int64_t size = coded.m * tree.L;
    for (int64_t i = 0; i < leaves.size(); i++) {
      if (i + 2 < leaves.size() && leaves[i + 2].distance <= limit)
        prefetch_bytes(coded.codes + leaves[i + 2].leaf * size, size);
      if (leaves[i].distance <= limit) scan(leaves[i], query);
    }
  }

  void scan(const NearLeaf &leaf, const Query &query) {
    constexpr int U = W == 4 ? 4 : 64 / W < 8 ? 64 / W : 8;  // vectors in flight
    const int64_t m = coded.m, d = tree.d, L = tree.L;
    const float *width = metric.data() + leaf.opened * 2 * m, *at = width + m;
    const uint8_t *code = coded.codes + leaf.leaf * m * L;
    const int32_t *order = tree.order + leaf.leaf * L;
    for (int64_t begin = 0; begin < L; begin += U * W) {
      VecF sums[U] = {};
      uint64_t passed = 0;
      // Of many inputs the widest first, until no point is left: see `add_by_spread`.
      const int64_t size = query.by_spread ? N_AT_A_TIME : m;
      for (int64_t i = 0; i < m;) {
        for (const int64_t stop = std::min(i + size, m); i < stop; i++) {
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
        if (row >= 0 && whole->admits(row, point, d, L))
          found[count++] = rough_of(distances[l], uint32_t(place));
      }
    }
    if (count >= patience || (count >= n_kept && limit == float(INFINITE))) keep_nearest();
  }
};

}  // namespace lsgp
