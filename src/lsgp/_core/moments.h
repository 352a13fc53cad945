// SPDX-License-Identifier: BSD-3-Clause
// What the rows of each node of a coarse tree [E9] are like together: from the leaves to the root,
// each node by its halves, which keeps digits that sums of squares would lose.
//
// As in the walk, every operation is rounded: which node is widest must not depend on the
// instruction set.
#pragma once

#include <cstdint>

#include "query.h"
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

class NodeMoments {
 public:
  // row_shares: (n,); shares: (n_nodes,), means, variances: (n_nodes, d), written
  NodeMoments(const Tree &tree, const double *row_shares, double *shares, double *means,
              double *variances)
      : tree(tree), row_shares(row_shares), shares(shares), means(means), variances(variances) {}

  void run() {
    const LeafPositions positions(tree.n_leaves);
    for (int64_t node = tree.n_nodes() - 1; node >= 0; node--) {
      if (positions.is_leaf(node))
        take_rows(node, positions(node));
      else
        join_halves(node);
    }
  }

 private:
  const Tree &tree;
  const double *row_shares;
  double *shares, *means, *variances;

  void take_rows(int64_t node, int64_t leaf) {
    const int64_t d = tree.d, L = tree.L;
    const int32_t *rows = tree.order + leaf * L;
    double total = 0;
    for (int64_t i = 0; i < L; i++) total += rows[i] >= 0 ? row_shares[rows[i]] : 0.0;
    shares[node] = total;
    for (int64_t j = 0; j < d; j++) {
      const double *points = tree.leaves + (leaf * d + j) * L;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < L; i++)
        if (rows[i] >= 0) mean += rounded(row_shares[rows[i]] * points[i]);
      mean /= total;
      for (int64_t i = 0; i < L; i++) {
        if (rows[i] < 0) continue;
        const double gap = points[i] - mean;
        variance += rounded(row_shares[rows[i]] * rounded(gap * gap));
      }
      means[node * d + j] = mean, variances[node * d + j] = variance / total;
    }
  }

  void join_halves(int64_t node) {
    const int64_t d = tree.d, left = 2 * node + 1, right = left + 1;
    const double whole = shares[left] + shares[right];
    const double first = shares[left] / whole, second = shares[right] / whole;
    shares[node] = whole;
    for (int64_t j = 0; j < d; j++) {
      const double gap = means[right * d + j] - means[left * d + j];
      means[node * d + j] = means[left * d + j] + rounded(second * gap);
      const double inside = rounded(first * variances[left * d + j]) +
                            rounded(second * variances[right * d + j]);
      variances[node * d + j] = inside + rounded(rounded(first * second) * rounded(gap * gap));
    }
  }
};

}  // namespace lsgp
