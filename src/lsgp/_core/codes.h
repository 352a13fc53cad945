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

// boxes: (n_nodes, 2, m), of these inputs, (m,); null: of all
// codes, bounds: as above, written
inline void encode_tree(const Tree &tree, const double *boxes, const int32_t *inputs, int64_t m,
                        uint8_t *codes, uint8_t *bounds) {
  const Groups groups(tree.n_leaves);
  std::fill(bounds, bounds + groups.n_groups * 2 * m * GROUP, 0);
  for (int64_t g = 0; g < groups.n_groups; g++) {
    int64_t count;
    const int64_t node = groups.first + g, first = groups.first_leaf(node, count);
    uint8_t *least = bounds + g * 2 * m * GROUP, *largest = least + m * GROUP;
    for (int64_t i = 0; i < count; i++)
      encode_leaf(tree, first + i, boxes + node * 2 * m, inputs, m, i,
                  codes + (first + i) * m * tree.L, least, largest);
  }
}

}  // namespace lsgp
