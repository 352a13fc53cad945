// SPDX-License-Identifier: BSD-3-Clause
// The tree of bounding boxes in which neighbors are searched, and queries of it, for the native core
// and for a GPU, where this file is pasted without its includes.
//
// The tree is complete and binary, numbered as a heap (children of i: 2i+1 and 2i+2), so it needs no
// pointers: three plain arrays are all there is, and they can be saved and memory-mapped. Every
// leaf holds L points (the last one may hold fewer, padded with NaN, which no comparison admits).
#pragma once

#include <cstdint>

namespace lsgp {

// Points per leaf come in multiples of this: whole vectors, however wide, several in flight.
constexpr int64_t LEAF_MULTIPLE = 64;

struct Tree {
  const double *leaves;  // (n_leaves, d, L), the points, divided by the unit
  const int32_t *order;  // (n_leaves, L), row of each point; -1 for padding
  const double *boxes;   // (n_nodes, 2, d), lower and upper corner of each node's points
  int64_t n_leaves;
  int64_t d;
  int64_t L;  // points per leaf; of a search, a multiple of LEAF_MULTIPLE

  int64_t n_nodes() const { return 2 * n_leaves - 1; }
  const double *box(int64_t node) const { return boxes + node * 2 * d; }
  // Coordinate j of the point at a place is at point(place)[j * L].
  const double *point(int64_t place) const { return leaves + place / L * d * L + place % L; }
};

// Heap numbers of the leaves wrap around (the deepest level comes last), positions in memory go
// from left to right.
struct LeafPositions {
  int64_t first_leaf, first_deepest, n_deepest;

  explicit LeafPositions(int64_t n_leaves) : first_leaf(n_leaves - 1), first_deepest(0) {
    while (2 * first_deepest + 1 < 2 * n_leaves - 1) first_deepest = 2 * first_deepest + 1;
    n_deepest = 2 * n_leaves - 1 - first_deepest;
  }
  bool is_leaf(int64_t node) const { return node >= first_leaf; }
  int64_t operator()(int64_t node) const {
    return node >= first_deepest ? node - first_deepest : n_deepest + node - first_leaf;
  }
};

// Leaves in the left half of a complete tree with n_leaves > 1.
inline int64_t n_leaves_left(int64_t n_leaves) {
  int64_t half = 1;  // nodes of the left half on the last level that is full
  while (4 * half < n_leaves) half *= 2;
  const int64_t rest = n_leaves - 2 * half;
  return half + (rest < half ? rest : half);
}

// A tree for coarse neighborhoods [E9], of leaves of any size.
struct CoarseTree {
  Tree tree;
  const double *means;          // (n_nodes, d), in units
  const double *squared_radii;  // (n_nodes,) mean squared distance of a node's rows from its mean
  const int32_t *places;        // (n,) of each row in the tree's order
  int64_t n;                    // rows: node i is unit n + i

  // Rows below a node with these leaves.
  int64_t n_rows(int64_t first_leaf, int64_t n_leaves) const {
    const int64_t begin = first_leaf * tree.L, end = begin + n_leaves * tree.L;
    return (end < n ? end : n) - begin;
  }
};
// Nodes of more rows are opened where groups are left out, rather than looked through.
constexpr int64_t MOST_LOOKED_THROUGH = 4096;

#ifndef LSGP_ON_DEVICE
// The product, rounded: keeps the compiler from fusing it into the sum that follows.
template <class V> inline V product(V a, V b) {
  V x = a * b;
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}
#endif

// How far z is from a box along an input.
template <class V> inline V gap_to_box(V lower, V upper, V z) {
  const V below = lower - z, above = z - upper, zero = {};
  const V gap = below > above ? below : above;
  return gap > zero ? gap : zero;
}

// A bound for the filter and for boxes that surely admits every point of squared distance up to
// threshold, however the filter's sums are rounded or underflow.
inline double with_slack(double threshold, int64_t d) {
  return threshold * (1 + double(d + 4) * 0x1p-50) + 1e-290;
}

// Of all queries. Null pointers: no such exclusion.
struct Exclusions {
  const int32_t *rows;          // (q,) one row that is not a neighbor of the query; -1: none
  const double *radii;          // (q,) radius, in the unscaled metric, without neighbors; 0: none
  const double *unit;           // (d,) what the tree's points were divided by
  const int32_t *groups;        // (n,)
  const int32_t *query_groups;  // (q,) group without neighbors; -1: none
  int64_t n_groups;             // n, or 0 without groups: a damaged tree must not read elsewhere
};

struct Query {
  const double *z = nullptr;       // (d,) in units
  const double *factor = nullptr;  // (d,) unit / lengthscale, positive; null: all 1
  const Exclusions *all = nullptr;
  const int32_t *by_spread = nullptr;  // (d,) inputs, the widest first; null: there are few
  int32_t excluded_row = -1, excluded_group = -1;
  double squared_radius = 0;

  Query() = default;
  // queries: (q, d)
  Query(const double *queries, int64_t i, int64_t d, const double *factor,
        const Exclusions &exclusions, const int32_t *by_spread = nullptr)
      : z(queries + i * d), factor(factor), all(&exclusions), by_spread(by_spread) {
    if (all->rows) excluded_row = all->rows[i];
    if (all->groups) excluded_group = all->query_groups[i];
    if (all->radii) squared_radius = all->radii[i] * all->radii[i];
  }

  // point: coordinate j at point[j * L]
  bool admits(int32_t row, const double *point, int64_t d, int64_t L) const {
    if (row < 0 || row == excluded_row || is_in_excluded_group(row)) return false;
    if (squared_radius <= 0) return true;
    double unscaled = 0;
    for (int64_t j = 0; j < d; j++) {
      const double gap = product(all->unit[j], point[j * L] - z[j]);
      unscaled += product(gap, gap);
    }
    return unscaled >= squared_radius;
  }
  bool is_in_excluded_group(int32_t row) const {
    return excluded_group >= 0 && uint64_t(row) < uint64_t(all->n_groups) &&
           all->groups[row] == excluded_group;
  }
};

}  // namespace lsgp
