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
#include <vector>

#include "query.h"
#include "tree.h"

namespace lsgp {

// Nodes of more rows are opened where groups are left out, rather than looked through.
constexpr int64_t MOST_LOOKED_THROUGH = 4096;

struct CoarseTree {
  Tree tree;                  // of leaves of any size
  const double *means;        // (n_nodes, d), in units
  const double *squared_radii;  // (n_nodes,) mean squared distance of a node's rows from its mean
  int64_t n;                  // rows: node i is unit n + i
};

class CoarseWalk {
 public:
  CoarseWalk(const CoarseTree &coarse, const int32_t *places, int64_t m)
      : coarse(coarse), tree(coarse.tree), places(places), positions(tree.n_leaves), m(m) {}

  // units: (m,), written, nearest first, -1 where there are fewer
  void run(const Query &query_, double squared_limit_, int32_t *units) {
    query = &query_, squared_limit = squared_limit_;
    place = query->excluded_row >= 0 && query->excluded_row < coarse.n
                ? places[query->excluded_row] : -1;
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
  const int32_t *places;
  const LeafPositions positions;
  const int64_t m;
  const Query *query = nullptr;
  double squared_limit = 0;
  int64_t place = -1, n_units = 0;
  std::vector<Node> open;                           // a heap, widest first
  std::vector<std::pair<double, int64_t>> found;    // squared distances and units

  int64_t rows_of(const Node &node) const {
    return std::min(coarse.n, (node.first_leaf + node.n_leaves) * tree.L) -
           node.first_leaf * tree.L;
  }

  // The node joins those that may be opened, unless it is beyond the limit.
  void consider(int64_t number, int64_t first_leaf, int64_t n_leaves) {
    const int64_t d = tree.d;
    const double *box = tree.box(number), *mean = coarse.means + number * d;
    double from_box = 0, from_mean = 0, unscaled = 0;
    for (int64_t j = 0; j < d; j++) {
      const double below = box[j] - query->z[j], above = query->z[j] - box[d + j];
      double gap = below > above ? below : above;
      gap = gap > 0 ? gap : 0;
      from_box += rounded(gap * gap);
      const double own = rounded(gap * query->all->unit[j]);
      unscaled += rounded(own * own);
      gap = mean[j] - query->z[j];
      from_mean += rounded(gap * gap);
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
    for (int64_t i = begin; i < begin + count; i++) {
      const int32_t row = tree.order[i];
      if (uint64_t(row) < uint64_t(query->all->n_groups) &&
          query->all->groups[row] == query->excluded_group)
        return true;
    }
    return false;
  }

  void add_rows(int64_t leaf) {
    const int64_t d = tree.d, L = tree.L;
    const double *points = tree.leaves + leaf * d * L;
    for (int64_t i = 0; i < L; i++) {
      const int32_t row = tree.order[leaf * L + i];
      if (row < 0 || !query->admits(row, points + i, d, L)) continue;
      double distance = 0;
      for (int64_t j = 0; j < d; j++) {
        const double gap = points[j * L + i] - query->z[j];
        distance += rounded(gap * gap);
      }
      if (distance > squared_limit) continue;
      found.push_back({distance, row});
      n_units++;
    }
  }
};

// queries: (q, d), in units; squared_limits: (q,); places: (n,) of each row in the tree's order
// units: (q, m), written
inline void find_units(const CoarseTree &coarse, const int32_t *places, const double *queries,
                       int64_t q, const double *squared_limits, const Exclusions &exclusions,
                       int64_t m, int32_t *units) {
  CoarseWalk walk(coarse, places, m);
  for (int64_t i = 0; i < q; i++)
    walk.run(Query(queries, i, coarse.tree.d, nullptr, exclusions), squared_limits[i],
             units + i * m);
}

}  // namespace lsgp
