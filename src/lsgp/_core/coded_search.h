// SPDX-License-Identifier: BSD-3-Clause
// The nearest points by their codes: what an exact search of many inputs asks first. Of each leaf
// that is no farther than the farthest point kept so far, all codes are scanned.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "coded_boxes.h"
#include "codes.h"
#include "leaf_walk.h"
#include "query.h"
#include "simd.h"

namespace lsgp {

template <bool SCALED> class CodedSearch {
 public:
  // The most by which codes moved a point or a box, in all that was opened.
  float error = 0;

  // factor: (m,) of the inputs that have codes, or null where SCALED is false
  CodedSearch(const CodedTree &coded, const double *factor)
      : coded(coded), tree(coded.tree),
        walk({tree.n_leaves, coded.m, coded.boxes, coded.bounds, coded.codes, coded.m * tree.L},
             1.0, factor) {}

  double unit() const { return walk.unit; }
  // Squared distance by codes above which points and boxes were dropped, of the last search.
  float limit() const { return walk.kept.limit; }

  // Places in the tree of the n_kept nearest by their codes, in no order.
  // query: in the inputs that have codes; whole: in all, which tells what it admits
  const Rough *find(const Query &query, const Query &whole_, int64_t n_kept, int64_t &n_found) {
    whole = &whole_, error = 0;
    walk.kept.start(n_kept, tree.L);
    walk.run(query, *this);
    return walk.kept.finish(n_found);
  }

 private:
  friend class LeafWalk<SCALED>;
  static constexpr int W = Simd<float>::W;
  static constexpr int64_t N_AHEAD = 2;

  const CodedTree coded;
  const Tree tree;
  LeafWalk<SCALED> walk;
  const Query *whole = nullptr;

  void push_below(int64_t node, const Query &query) { walk.push_children(node, query); }

  void enter(const float *, float squared_diagonal) {
    error = std::max(error, 0.5f * std::sqrt(squared_diagonal));  // codes are rounded
  }

  void end_scan(const Query &) {}

  void scan(const NearLeaf &leaf, const Query &query) {
    constexpr int U = W == 4 ? 4 : 64 / W < 8 ? 64 / W : 8;  // vectors in flight
    const int64_t m = coded.m, d = tree.d, L = tree.L;
    const float *width = walk.metrics() + leaf.opened * 2 * m, *at = width + m;
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
          passed |= uint64_t(true_lanes(sums[u] < splat(limit()))) << (u * W);
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
          walk.kept.add(rough_of(distances[l], uint32_t(place)));
      }
    }
    walk.kept.some_added();
  }
};

}  // namespace lsgp
