// SPDX-License-Identifier: BSD-3-Clause
// The points of a tree in a byte per input: what an approximate search reads instead of them.
//
// Leaves come in groups: all that are below one node, four levels up. A code is a point's place in
// the box of its group, in 255ths of its width; so a leaf's codes need no header of their own, and
// the boxes of a group's leaves, in codes too, are compared with a query in one go.
#pragma once

#include <algorithm>
#include <cstdint>

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

struct CodedTree {
  Tree tree;
  const uint8_t *codes;   // (n_leaves, d, L)
  const uint8_t *bounds;  // (n_groups, 2, d, GROUP) least and largest code of each leaf
};

// codes, bounds: as above, written
inline void encode_tree(const Tree &tree, uint8_t *codes, uint8_t *bounds) {
  const Groups groups(tree.n_leaves);
  const int64_t d = tree.d, L = tree.L;
  for (int64_t g = 0; g < groups.n_groups; g++) {
    const int64_t node = groups.first + g;
    const double *lower = tree.box(node), *upper = lower + d;
    int64_t count;
    const int64_t first = groups.first_leaf(node, count);
    uint8_t *least = bounds + g * 2 * d * GROUP, *largest = least + d * GROUP;
    std::fill(least, least + 2 * d * GROUP, 0);
    for (int64_t i = 0; i < count; i++)
      for (int64_t j = 0; j < d; j++) {
        const double width = upper[j] - lower[j];
        const int64_t begin = ((first + i) * d + j) * L;
        uint8_t low = 255, high = 0;
        for (int64_t l = 0; l < L; l++) {
          const double share = width > 0 ? (tree.leaves[begin + l] - lower[j]) / width : 0.0;
          // Padding is NaN.
          const bool is_point = share >= 0;
          const uint8_t code = is_point ? uint8_t(std::min(share, 1.0) * CODE_STEPS + 0.5) : 0;
          codes[begin + l] = code;
          low = is_point && code < low ? code : low;
          high = is_point && code > high ? code : high;
        }
        least[j * GROUP + i] = low, largest[j * GROUP + i] = high;
      }
  }
}

}  // namespace lsgp
