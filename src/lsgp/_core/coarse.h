// SPDX-License-Identifier: BSD-3-Clause
// Coarse neighborhoods [E9]: rows that are far from the query and close to each other stand as one.
//
// The units of a query are nodes of a tree of small leaves, and rows. The walk begins with the root
// and opens, again and again, the node that is widest for its distance (its root mean square radius
// over the distance of its mean from the query), as long as there is room for what comes out of it.
// So every query has at most so many units, whatever the rows are like, and about as many of them
// between one and two times any distance. Units whose mean is beyond the limit are left out.
//
// As in the search, nothing depends on the instruction set or on the order of queries: every
// operation is rounded, and of equals the smaller number comes first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tree.h"

namespace lsgp {

// order: (n_leaves, L); values: (n, t); sums: (n_nodes, t), written
inline void sum_nodes(const int32_t *order, int64_t n_leaves, int64_t L, const double *values,
                      int64_t t, double *sums) {
  const LeafPositions positions(n_leaves);
  for (int64_t node = 2 * n_leaves - 2; node >= 0; node--) {
    double *own = sums + node * t;
    if (positions.is_leaf(node)) {
      const int32_t *rows = order + positions(node) * L;
      for (int64_t j = 0; j < t; j++) own[j] = 0;
      for (int64_t i = 0; i < L; i++)
        for (int64_t j = 0; rows[i] >= 0 && j < t; j++) own[j] += values[rows[i] * t + j];
    } else {
      const double *left = sums + (2 * node + 1) * t, *right = left + t;
      for (int64_t j = 0; j < t; j++) own[j] = left[j] + right[j];
    }
  }
}

// What the rows of each node are like together: from the leaves to the root, each node by its
// halves, which keeps digits that sums of squares would lose. As in the walk, every operation is rounded.
// row_shares: (n,); shares: (n_nodes,), means, variances: (n_nodes, d), written
inline void find_moments(const Tree &tree, const double *row_shares, double *shares, double *means,
                         double *variances) {
  const LeafPositions positions(tree.n_leaves);
  const int64_t d = tree.d, L = tree.L;
  for (int64_t node = tree.n_nodes() - 1; node >= 0; node--) {
    double *mean = means + node * d, *variance = variances + node * d;
    if (positions.is_leaf(node)) {
      const int32_t *rows = tree.order + positions(node) * L;
      double total = 0;
      for (int64_t i = 0; i < L; i++) total += rows[i] >= 0 ? row_shares[rows[i]] : 0.0;
      shares[node] = total;
      for (int64_t j = 0; j < d; j++) {
        const double *points = tree.leaves + (positions(node) * d + j) * L;
        double first = 0, second = 0;
        for (int64_t i = 0; i < L; i++)
          if (rows[i] >= 0) first += product(row_shares[rows[i]], points[i]);
        first /= total;
        for (int64_t i = 0; i < L; i++) {
          if (rows[i] < 0) continue;
          const double gap = points[i] - first;
          second += product(row_shares[rows[i]], product(gap, gap));
        }
        mean[j] = first, variance[j] = second / total;
      }
    } else {
      const int64_t left = 2 * node + 1, right = left + 1;
      const double whole = shares[left] + shares[right];
      const double first = shares[left] / whole, second = shares[right] / whole;
      shares[node] = whole;
      for (int64_t j = 0; j < d; j++) {
        const double gap = means[right * d + j] - means[left * d + j];
        mean[j] = means[left * d + j] + product(second, gap);
        const double inside = product(first, variances[left * d + j]) +
                              product(second, variances[right * d + j]);
        variance[j] = inside + product(product(first, second), product(gap, gap));
      }
    }
  }
}

class CoarseWalk {
 public:
  CoarseWalk(const CoarseTree &coarse, int64_t m)
      : coarse(coarse), tree(coarse.tree), positions(tree.n_leaves), m(m) {}

  // units: (m,), written, nearest first, -1 where there are fewer
  void run(const Query &query_, double squared_limit_, int32_t *units) {
    query = &query_, squared_limit = squared_limit_;
    place = query->excluded_row >= 0 && query->excluded_row < coarse.n
                ? coarse.places[query->excluded_row] : -1;
    open.clear(), found.clear(), n_units = 0;
    consider(0, 0, tree.n_leaves);
    while (!open.empty() && open.front().width > 0) {
      const Node node = open.front();
      const bool is_leaf = positions.is_leaf(node.number);
      const int64_t n_inside = is_leaf ? rows_of(node) : 2;
      if (node.width < INFINITE && n_units + n_inside - node.is_near > m) break;
      std::pop_heap(open.begin(), open.end());
      open.pop_back();
      n_units -= node.is_near;
      if (is_leaf) {
        add_rows(node.first_leaf);
      } else {
        const int64_t left = n_leaves_left(node.n_leaves);
        consider(2 * node.number + 1, node.first_leaf, left);
        consider(2 * node.number + 2, node.first_leaf + left, node.n_leaves - left);
      }
    }
    for (const Node &node : open)
      if (node.is_near) found.push_back({node.squared_distance, coarse.n + node.number});
    std::sort(found.begin(), found.end());
    for (int64_t i = 0; i < m; i++)
      units[i] = i < int64_t(found.size()) ? int32_t(found[i].second) : -1;
  }

 private:
  struct Node {
    double width;  // squared, relative to the distance; infinite if it must be opened
    int64_t number, first_leaf, n_leaves;
    double squared_distance;
    bool is_near;
    bool operator<(const Node &other) const {
      return width < other.width || (width == other.width && number > other.number);
    }
  };

  const CoarseTree &coarse;
  const Tree &tree;
  const LeafPositions positions;
  const int64_t m;
  const Query *query = nullptr;
  double squared_limit = 0;
  int64_t place = -1, n_units = 0;
  std::vector<Node> open;                           // a heap, widest first
  std::vector<std::pair<double, int64_t>> found;    // squared distances and units

  int64_t rows_of(const Node &node) const {
    return coarse.n_rows(node.first_leaf, node.n_leaves);
  }

  // The node joins those that may be opened, unless it is beyond the limit.
  void consider(int64_t number, int64_t first_leaf, int64_t n_leaves) {
    const int64_t d = tree.d;
    const double *box = tree.box(number), *mean = coarse.means + number * d;
    double from_box = 0, from_mean = 0, unscaled = 0;
    for (int64_t j = 0; j < d; j++) {
      const double gap = gap_to_box(box[j], box[d + j], query->z[j]);
      from_box += product(gap, gap);
      const double own = product(gap, query->all->unit[j]), away = mean[j] - query->z[j];
      unscaled += product(own, own);
      from_mean += product(away, away);
    }
    if (from_box > squared_limit) return;
    Node node{0, number, first_leaf, n_leaves, from_mean, from_mean <= squared_limit};
    const double radius = coarse.squared_radii[number];
    if (radius > 0) node.width = from_box > 0 ? radius / from_mean : INFINITE;
    if (unscaled < query->squared_radius || holds_excluded(node)) node.width = INFINITE;
    n_units += node.is_near;
    open.push_back(node);
    std::push_heap(open.begin(), open.end());
  }

  bool holds_excluded(const Node &node) const {
    const int64_t begin = node.first_leaf * tree.L, count = rows_of(node);
    if (place >= begin && place < begin + count) return true;
    if (query->excluded_group < 0) return false;
    if (count > MOST_LOOKED_THROUGH) return true;
    return std::any_of(tree.order + begin, tree.order + begin + count,
                       [&](int32_t row) { return query->is_in_excluded_group(row); });
  }

  void add_rows(int64_t leaf) {
    const int64_t d = tree.d, L = tree.L;
    const double *points = tree.leaves + leaf * d * L;
    for (int64_t i = 0; i < L; i++) {
      const int32_t row = tree.order[leaf * L + i];
      if (!query->admits(row, points + i, d, L)) continue;
      double distance = 0;
      for (int64_t j = 0; j < d; j++) {
        const double gap = points[j * L + i] - query->z[j];
        distance += product(gap, gap);
      }
      if (distance > squared_limit) continue;
      found.push_back({distance, row});
      n_units++;
    }
  }
};

// queries: (q, d), in units; squared_limits: (q,); units: (q, m), written
inline void find_units(const CoarseTree &coarse, const double *queries, int64_t q,
                       const double *squared_limits, const Exclusions &exclusions, int64_t m,
                       int32_t *units) {
  CoarseWalk walk(coarse, m);
  for (int64_t i = 0; i < q; i++)
    walk.run(Query(queries, i, coarse.tree.d, nullptr, exclusions), squared_limits[i],
             units + i * m);
}

}  // namespace lsgp
