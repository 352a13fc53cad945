// SPDX-License-Identifier: BSD-3-Clause
// The points of a tree in a byte per input: what most searches of many inputs read instead.
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

// Codes of all inputs of a tree, or of m of them.
struct CodedTree {
  Tree tree;
  const uint8_t *codes;   // (n_leaves, m, L)
  const uint8_t *bounds;  // (n_groups, 2, m, GROUP) least and largest code of each leaf
  const double *boxes;    // (n_nodes, 2, m) of the tree in the inputs that have codes
  int64_t m;

  const double *box(int64_t node) const { return boxes + node * 2 * m; }
};

// boxes: (n_nodes, 2, m), of these inputs, (m,); null: of all
// codes, bounds: as above, written
inline void encode_tree(const Tree &tree, const double *boxes, const int32_t *inputs, int64_t m,
                        uint8_t *codes, uint8_t *bounds) {
  const Groups groups(tree.n_leaves);
  const int64_t L = tree.L;
  for (int64_t g = 0; g < groups.n_groups; g++) {
    const int64_t node = groups.first + g;
    const double *lower = boxes + node * 2 * m, *upper = lower + m;
    int64_t count;
    const int64_t first = groups.first_leaf(node, count);
    uint8_t *least = bounds + g * 2 * m * GROUP, *largest = least + m * GROUP;
    std::fill(least, least + 2 * m * GROUP, 0);
    for (int64_t i = 0; i < count; i++)
      for (int64_t j = 0; j < m; j++) {
        const double width = upper[j] - lower[j];
        const int64_t input = inputs ? inputs[j] : j;
        const double *points = tree.leaves + ((first + i) * tree.d + input) * L;
        uint8_t *code = codes + ((first + i) * m + j) * L;
        int low = 255, high = 0;
        for (int64_t l = 0; l < L; l++) {
          const double share = width > 0 ? (points[l] - lower[j]) / width : 0.0;
          // Padding is NaN.
          const bool is_point = share >= 0;
          const int step = is_point ? int(std::min(share, 1.0) * CODE_STEPS + 0.5) : 0;
          code[l] = uint8_t(step);
          low = is_point && step < low ? step : low;
          high = is_point && step > high ? step : high;
        }
        least[j * GROUP + i] = uint8_t(low), largest[j * GROUP + i] = uint8_t(high);
      }
  }
}

}  // namespace lsgp
