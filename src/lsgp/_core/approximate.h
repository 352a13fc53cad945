// SPDX-License-Identifier: BSD-3-Clause
// Approximate neighbor search: only leaves that are much nearer than the farthest neighbor.
//
// In many dimensions most leaves that an exact search has to open touch the ball of the neighbors
// at its rim, and hold none of them. Here a leaf is opened if the square of its distance is at
// most `reach` times that of the farthest neighbor so far: of a million uniform points of 16
// inputs, at a reach of 0.4, 700 leaves instead of 6,000 have 99 % of the 64 nearest. Leaves are
// opened nearest first, and points are compared by half codes, a sixteenth of the bytes, and codes
// (see `near_search.h`); a few more than are wanted are kept, and the last word is that of exact
// distances.
//
// What is found depends on nothing but the tree and the query.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "candidates.h"
#include "near_search.h"
#include "query.h"
#include "search.h"

namespace lsgp {

// Arguments as of find_nearest. Where fewer than k are found, the exact search has the last word.
template <bool SCALED>
inline void find_near(const HalfCodedTree &coded, double reach, const double *queries, int64_t q,
                      const double *factor, int64_t k, const Exclusions &exclusions,
                      int32_t *neighbors, double *distances) {
  const Tree &tree = coded.tree;
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
    nearest.resize(count), scratch.resize(count);
    for (int64_t c = 0; c < count; c += TOGETHER) {
      for (int64_t e = c + 2 * TOGETHER; e < std::min(c + 3 * TOGETHER, count); e++)
        prefetch_point(tree, uint32_t(found[e]));
      int64_t places[TOGETHER];
      double squares[TOGETHER];
      for (int e = 0; e < TOGETHER; e++) places[e] = uint32_t(found[std::min(c + e, count - 1)]);
      exact_distances<SCALED>(tree, query, places, squares);
      for (int e = 0; e < TOGETHER && c + e < count; e++)
        nearest[c + e] = candidate_of(squares[e], tree.order[places[e]]);
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
