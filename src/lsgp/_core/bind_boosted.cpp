// SPDX-License-Identifier: BSD-3-Clause
// Boosted trees: how they are grown (boost.h), and sums of the leaves that rows of inputs fall into,
// tree by tree. Nothing of the sums is wide: a row goes from node to node, and what costs is waiting
// for the next one, so rows are taken eight at a time.
#include <algorithm>
#include <vector>

#include "arrays.h"
#include "boost.h"

namespace nb = nanobind;
using namespace lsgp;

namespace {

struct Nodes {
  const int32_t *feature;  // -1: a leaf
  const double *threshold;
  const int32_t *left, *right;
  const double *value;
};

// What a step down needs of a node, in one place; both children of a leaf are the leaf itself.
struct Step {
  double threshold;
  int32_t feature;
  int32_t children[2];
};

constexpr int64_t TOGETHER = 8;
// Rows that all go down a tree before the next one: of hundreds of trees, one stays in the cache.
constexpr int64_t ROWS_OF_BLOCK = 32 * TOGETHER;

// Adds the leaves of TOGETHER rows from `root` on; rows behind the last are the last one again.
void descend(const Step *steps, const double *value, int32_t root, const double *const *rows,
             double *totals) {
  int32_t at[TOGETHER];
  for (int64_t i = 0; i < TOGETHER; ++i) at[i] = root;
  int32_t is_inside = 1;
  while (is_inside) {
    is_inside = 0;
    for (int64_t i = 0; i < TOGETHER; ++i) {
      const Step &step = steps[at[i]];
      // By place, not by a branch: which way it goes, no processor can guess.
      const int32_t next = step.children[!(rows[i][step.feature] <= step.threshold)];
      is_inside |= next ^ at[i];
      at[i] = next;
    }
  }
  for (int64_t i = 0; i < TOGETHER; ++i) totals[i] += value[at[i]];
}

// sums: (n_sums,) of the trees up to each of `ends`, in the order in which blocks of rows add them
void sum_row(const Nodes &nodes, const double *x, const int32_t *roots, const int64_t *ends,
             int64_t n_sums, double *sums) {
  int64_t r = 0;
  for (int64_t k = 0; k < n_sums; ++k) {
    double total = 0;
    for (; r < ends[k]; ++r) {
      int32_t at = roots[r];
      while (nodes.feature[at] >= 0)
        at = x[nodes.feature[at]] <= nodes.threshold[at] ? nodes.left[at] : nodes.right[at];
      total += nodes.value[at];
    }
    sums[k] = total;
  }
}

// Sums (q, k) of the leaves that rows (q, d) fall into, over the trees up to each end.
void sum_leaves(In<double, 2> X, In<int32_t, 1> feature, In<double, 1> threshold,
                In<int32_t, 1> left, In<int32_t, 1> right, In<double, 1> value,
                In<int32_t, 1> roots, In<int64_t, 1> ends, Out<double, 2> sums) {
  const int64_t q = X.shape(0), d = X.shape(1), n_nodes = feature.shape(0);
  const int64_t n_roots = roots.shape(0), n_sums = ends.shape(0);
  require(has_shape(threshold, n_nodes) && has_shape(left, n_nodes) &&
              has_shape(right, n_nodes) && has_shape(value, n_nodes),
          "nodes must have all of their values");
  require(d > 0, "rows must have inputs");
  require_shape(sums, "sums", "(q, n_sums)", q, n_sums);
  const Nodes nodes{feature.data(), threshold.data(), left.data(), right.data(), value.data()};
  for (int64_t i = 0; i < n_nodes; ++i) {
    if (nodes.feature[i] < 0) continue;
    require(nodes.feature[i] < d, "a node asks for an input that does not exist");
    // Then no path is endless, and none leaves the arrays.
    require(std::min(nodes.left[i], nodes.right[i]) > i &&
                std::max(nodes.left[i], nodes.right[i]) < n_nodes,
            "a node's children do not lie behind it");
  }
  for (int64_t k = 0; k < n_roots; ++k)
    require(roots.data()[k] >= 0 && roots.data()[k] < n_nodes, "a root is no node");
  for (int64_t k = 0; k < n_sums; ++k)
    require(ends.data()[k] >= (k ? ends.data()[k - 1] : 0) && ends.data()[k] <= n_roots,
            "sums must be of trees in order");
  nb::gil_scoped_release release;
  if (q < TOGETHER) {  // not worth a copy of the nodes
    for (int64_t i = 0; i < q; ++i)
      sum_row(nodes, X.data() + i * d, roots.data(), ends.data(), n_sums,
              sums.data() + i * n_sums);
    return;
  }
  std::vector<Step> steps;
  for (int32_t i = 0; i < n_nodes; ++i) {
    if (nodes.feature[i] < 0)
      steps.push_back({nodes.threshold[i], 0, {i, i}});
    else
      steps.push_back({nodes.threshold[i], nodes.feature[i], {nodes.left[i], nodes.right[i]}});
  }
  for (int64_t first = 0; first < q; first += ROWS_OF_BLOCK) {
    const double *rows[ROWS_OF_BLOCK];
    for (int64_t i = 0; i < ROWS_OF_BLOCK; ++i) rows[i] = X.data() + std::min(first + i, q - 1) * d;
    const int64_t n_here = std::min(q - first, ROWS_OF_BLOCK);
    int64_t start = 0;
    for (int64_t k = 0; k < n_sums; ++k) {
      double total[ROWS_OF_BLOCK] = {};
      for (int64_t r = start; r < ends.data()[k]; ++r)
        for (int64_t i = 0; i < n_here; i += TOGETHER)
          descend(steps.data(), nodes.value, roots.data()[r], rows + i, total + i);
      start = ends.data()[k];
      for (int64_t i = 0; i < n_here; ++i) sums.data()[(first + i) * n_sums + k] = total[i];
    }
  }
}

// Bins must be of their inputs: the histograms have no others.
void require_bins(In<uint8_t, 2> bins, const int64_t *firsts) {
  const int64_t n = bins.shape(0), d = bins.shape(1);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < d; ++j)
      require(bins.data()[i * d + j] < firsts[j + 1] - firsts[j], "a bin does not exist");
}

// Grows boosted trees of the residuals, which are changed; see boost.h.
void grow_trees(In<uint8_t, 2> bins, In<int64_t, 1> firsts, In<double, 1> edges,
                In<double, 1> weights, Out<double, 1> residuals, In<uint8_t, 2> watched_bins,
                Out<double, 1> watched_residuals, double least_weight, double learning_rate,
                double l2, Out<int32_t, 2> feature, Out<double, 2> threshold,
                Out<int32_t, 2> left, Out<int32_t, 2> right, Out<double, 2> value,
                Out<int32_t, 1> n_nodes, Out<double, 1> watched_error) {
  const int64_t n = bins.shape(0), d = bins.shape(1), n_watched = watched_bins.shape(0);
  const int64_t n_trees = feature.shape(0), room = feature.shape(1), n_leaves = (room + 1) / 2;
  require(n <= INT32_MAX, "there must be fewer than 2^31 rows");
  require(has_shape(firsts, d + 1) && firsts.data()[0] == 0, "firsts must be (d + 1,)");
  for (int64_t j = 0; j < d; ++j) {
    const int64_t n_bins = firsts.data()[j + 1] - firsts.data()[j];
    require(n_bins >= 1 && n_bins <= 256, "an input must have 1 to 256 bins");
  }
  require(has_shape(edges, firsts.data()[d]), "every bin must have an edge");
  require(has_shape(residuals, n), "residuals must be (n,)");
  require(weights.shape(0) == 0 || has_shape(weights, n), "weights must be (n,), or none");
  require(has_shape(watched_bins, n_watched, d) && has_shape(watched_residuals, n_watched),
          "what is watched must have bins and residuals");
  require(n_leaves >= 1 && room == 2 * n_leaves - 1, "trees must have room for 2 n_leaves - 1 nodes");
  require(least_weight > 0.0, "a leaf must have rows");
  require(has_shape(threshold, n_trees, room) && has_shape(left, n_trees, room) &&
              has_shape(right, n_trees, room) && has_shape(value, n_trees, room),
          "trees must have all of their values");
  require(has_shape(n_nodes, n_trees) && has_shape(watched_error, n_trees),
          "every tree must have its number of nodes and its error");
  require_bins(bins, firsts.data());
  require_bins(watched_bins, firsts.data());
  nb::gil_scoped_release release;
  const Binned inputs{bins.data(), n, d, firsts.data(), edges.data()};
  const Growth growth{n_leaves, least_weight, learning_rate, l2};
  TreeGrower grower(inputs, weights.shape(0) == 0 ? nullptr : weights.data(), growth);
  std::vector<uint8_t> bin_of_node(room);
  for (int64_t k = 0; k < n_trees; ++k) {
    const int64_t at = k * room;
    GrownTree tree{feature.data() + at, threshold.data() + at, left.data() + at, right.data() + at,
                   value.data() + at, bin_of_node.data(), 0};
    grower.grow(residuals.data(), tree);
    n_nodes.data()[k] = tree.n_nodes;
    double squares = 0.0;
    for (int64_t i = 0; i < n_watched; ++i) {
      double &left_over = watched_residuals.data()[i];
      left_over -= value_of(tree, watched_bins.data() + i * d);
      squares += left_over * left_over;
    }
    watched_error.data()[k] = n_watched ? squares / double(n_watched) : 0.0;
  }
}

}  // namespace

void bind_boosted(nb::module_ &m) {
  define(m, "grow_trees", &grow_trees);
  define(m, "sum_leaves", &sum_leaves);
}
