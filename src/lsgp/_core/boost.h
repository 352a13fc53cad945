// SPDX-License-Identifier: BSD-3-Clause
// Boosted trees of squared errors, grown leaf by leaf on histograms of binned inputs.
//
// A tree fits what the trees before it have left of the targets. Its leaves are split in the order
// of what a split gains, G²/(H + l2) of the parts less that of the whole, where G is the weighted
// sum of the residuals and H that of the weights. Rows are read once for the histogram of the
// smaller part of a split; that of the other is what remains of the whole. One thread grows the
// trees of a fit, in one order: sums do not depend on how many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace lsgp {

struct Growth {
  int64_t n_leaves;      // of a tree, at most
  double least_weight;   // of the rows of a leaf
  double learning_rate;  // of what a leaf would say, what it says
  double l2;             // weight of a row of residual 0 in each leaf
};

// Inputs as numbers of bins: those of input j are firsts[j] to before firsts[j + 1].
struct Binned {
  const uint8_t *bins;    // (n, d), from 0 on for each input
  int64_t n, d;
  const int64_t *firsts;  // (d + 1,)
  const double *edges;    // (firsts[d],): bins up to b of an input have values up to its edge b
};

// One tree, with room for 2 n_leaves - 1 nodes.
struct GrownTree {
  int32_t *feature;  // -1: a leaf
  double *threshold;
  int32_t *left, *right;
  double *value;
  uint8_t *bin;  // of the threshold
  int32_t n_nodes;
};

struct HistogramBin {
  double sum, weight;
};

inline void add(HistogramBin &total, const HistogramBin &part) {
  total.sum += part.sum;
  total.weight += part.weight;
}

struct Split {
  double gain = 0.0;  // of no split
  int32_t feature = -1;
  uint8_t bin = 0;
  HistogramBin left{0.0, 0.0};
};

class TreeGrower {
 public:
  TreeGrower(const Binned &inputs, const double *weights, const Growth &growth)
      : inputs(inputs), weights(weights), growth(growth), n_bins(inputs.firsts[inputs.d]),
        rows(inputs.n), others(inputs.n), histograms(size_t(growth.n_leaves) * n_bins),
        sums(n_bins), gains(n_bins) {}

  // Grows a tree of the residuals, and takes from these what it says.
  void grow(double *residuals, GrownTree &tree) {
    for (int64_t i = 0; i < inputs.n; ++i) rows[i] = int32_t(i);
    leaves.clear();
    tree.n_nodes = 0;
    Leaf root{0, inputs.n, add_node(tree), 0, {0.0, 0.0}, {}};
    build(root, residuals);
    for (int64_t b = 0; inputs.d && b < inputs.firsts[1]; ++b)
      add(root.total, histogram_of(root)[b]);
    find_split(root);
    leaves.push_back(root);
    while (int64_t(leaves.size()) < growth.n_leaves) {
      size_t best = 0;  // the first of equals
      for (size_t k = 1; k < leaves.size(); ++k)
        if (leaves[k].split.gain > leaves[best].split.gain) best = k;
      if (leaves[best].split.feature < 0) break;
      divide(best, residuals, tree);
    }
    for (const Leaf &leaf : leaves) {
      const double said = growth.learning_rate * leaf.total.sum / (leaf.total.weight + growth.l2);
      tree.value[leaf.node] = said;
      for (int64_t i = leaf.start; i < leaf.stop; ++i) residuals[rows[i]] -= said;
    }
  }

 private:
  struct Leaf {
    int64_t start, stop;  // of its rows
    int32_t node;
    size_t histogram;  // its number
    HistogramBin total;
    Split split;
  };

  Binned inputs;
  const double *weights;  // nullptr: all are 1
  Growth growth;
  int64_t n_bins;
  std::vector<int32_t> rows, others;
  std::vector<HistogramBin> histograms, sums;
  std::vector<double> gains;
  std::vector<Leaf> leaves;

  static int32_t add_node(GrownTree &tree) {
    const int32_t node = tree.n_nodes++;
    tree.feature[node] = -1;
    tree.threshold[node] = tree.value[node] = 0.0;
    tree.left[node] = tree.right[node] = node;
    tree.bin[node] = 0;
    return node;
  }

  HistogramBin *histogram_of(const Leaf &leaf) { return &histograms[leaf.histogram * n_bins]; }

  void build(const Leaf &leaf, const double *residuals) {
    HistogramBin *histogram = histogram_of(leaf);
    std::fill(histogram, histogram + n_bins, HistogramBin{0.0, 0.0});
    for (int64_t i = leaf.start; i < leaf.stop; ++i) {
      const int64_t row = rows[i];
      const double weight = weights == nullptr ? 1.0 : weights[row];
      const double part = weight * residuals[row];
      const uint8_t *bins = inputs.bins + row * inputs.d;
      for (int64_t j = 0; j < inputs.d; ++j) {
        HistogramBin &bin = histogram[inputs.firsts[j] + bins[j]];
        bin.sum += part;
        bin.weight += weight;
      }
    }
  }

  void find_split(Leaf &leaf) {
    leaf.split = Split{};
    const HistogramBin *histogram = histogram_of(leaf), total = leaf.total;
    const double l2 = growth.l2, least = growth.least_weight;
    if (total.weight < 2.0 * least) return;
    const double whole = total.sum * total.sum / (total.weight + l2);
    for (int64_t j = 0; j < inputs.d; ++j) {
      const HistogramBin *own = histogram + inputs.firsts[j];
      const int64_t n = inputs.firsts[j + 1] - inputs.firsts[j] - 1;  // of edges between bins
      HistogramBin left{0.0, 0.0};
      for (int64_t b = 0; b < n; ++b) {
        add(left, own[b]);
        sums[b] = left;
      }
      for (int64_t b = 0; b < n; ++b) {
        const double right_sum = total.sum - sums[b].sum;
        const double right_weight = total.weight - sums[b].weight;
        const double gain = sums[b].sum * sums[b].sum / (sums[b].weight + l2) +
                            right_sum * right_sum / (right_weight + l2) - whole;
        gains[b] = sums[b].weight >= least && right_weight >= least ? gain : 0.0;
      }
      for (int64_t b = 0; b < n; ++b)
        if (gains[b] > leaf.split.gain) leaf.split = {gains[b], int32_t(j), uint8_t(b), sums[b]};
    }
  }

  // The leaf of this number becomes two: it keeps the left part, the right one is behind all.
  void divide(size_t number, const double *residuals, GrownTree &tree) {
    const Leaf whole = leaves[number];
    const Split &split = whole.split;
    int64_t n_left = 0, n_right = 0;
    for (int64_t i = whole.start; i < whole.stop; ++i) {
      const int32_t row = rows[i];
      if (inputs.bins[row * inputs.d + split.feature] <= split.bin)
        rows[whole.start + n_left++] = row;
      else
        others[n_right++] = row;
    }
    const int64_t middle = whole.start + n_left;
    std::copy(others.begin(), others.begin() + n_right, rows.begin() + middle);
    tree.feature[whole.node] = split.feature;
    tree.threshold[whole.node] = inputs.edges[inputs.firsts[split.feature] + split.bin];
    tree.bin[whole.node] = split.bin;
    const HistogramBin rest{whole.total.sum - split.left.sum,
                            whole.total.weight - split.left.weight};
    Leaf left{whole.start, middle, add_node(tree), whole.histogram, split.left, {}};
    Leaf right{middle, whole.stop, add_node(tree), leaves.size(), rest, {}};
    tree.left[whole.node] = left.node;
    tree.right[whole.node] = right.node;
    // The last split of a tree needs no histograms: its parts are not split again.
    if (int64_t(leaves.size()) + 1 < growth.n_leaves) {
      Leaf &smaller = n_left <= n_right ? left : right, &larger = n_left <= n_right ? right : left;
      smaller.histogram = leaves.size();
      larger.histogram = whole.histogram;
      build(smaller, residuals);
      HistogramBin *remaining = histogram_of(larger);
      const HistogramBin *taken = histogram_of(smaller);
      for (int64_t b = 0; b < n_bins; ++b) {
        remaining[b].sum -= taken[b].sum;
        remaining[b].weight -= taken[b].weight;
      }
      find_split(left);
      find_split(right);
    }
    leaves[number] = left;
    leaves.push_back(right);
  }
};

// What a tree says of a row that is binned as those that it was grown on.
inline double value_of(const GrownTree &tree, const uint8_t *bins) {
  int32_t at = 0;
  while (tree.feature[at] >= 0)
    at = bins[tree.feature[at]] <= tree.bin[at] ? tree.left[at] : tree.right[at];
  return tree.value[at];
}

}  // namespace lsgp
