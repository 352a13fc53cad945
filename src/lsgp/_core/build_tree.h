// SPDX-License-Identifier: BSD-3-Clause
// How a tree is built: see tree.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

#include "tree.h"

namespace lsgp {

class TreeBuilder {
 public:
  // points: (n_leaves * L, d), of which n rows are given; on return (n_leaves, d, L)
  // order: (n_leaves * L,); boxes: (2 * n_leaves - 1, 2, d)
  TreeBuilder(double *points, int32_t *order, double *boxes, int64_t n, int64_t n_leaves,
              int64_t d, int64_t L)
      : points(points), order(order), boxes(boxes), n(n), n_leaves(n_leaves), d(d), L(L),
        keys(n) {}

  void build(int64_t n_threads) {
    for (int64_t i = 0; i < n_leaves * L; i++) order[i] = i < n ? int32_t(i) : -1;
    n_threads = std::max<int64_t>(std::min(n_threads, n_leaves), 1);
    // Here, since a thread must not throw.
    blocks.assign(n_threads, std::vector<double>(L * d));
    build_node(0, 0, n_leaves, 0, n_threads);
  }

 private:
  struct Key {
    double value;
    int32_t position;
    bool operator<(const Key &other) const {
      return value < other.value || (value == other.value && position < other.position);
    }
  };

  double *points;
  int32_t *order;
  double *boxes;
  const int64_t n, n_leaves, d, L;
  std::vector<Key> keys;
  std::vector<std::vector<double>> blocks;  // (n_threads, L * d)

  // A node's two halves are of no concern to each other: the tree is the same however many threads
  // build it. Those of this node are numbered from `thread` to `thread + n_threads - 1`.
  void build_node(int64_t node, int64_t leaf, int64_t leaves_below, int64_t thread,
                  int64_t n_threads) {
    const int64_t begin = leaf * L, end = std::min(n, (leaf + leaves_below) * L);
    const int64_t widest = bound(node, begin, end);
    if (leaves_below == 1) return transpose(begin, end, blocks[thread]);
    const int64_t left = n_leaves_left(leaves_below), half = n_threads / 2;
    split(begin, begin + left * L, end, widest);
    std::thread other;
    if (half) try {
        other = std::thread(&TreeBuilder::build_node, this, 2 * node + 1, leaf, left,
                            thread + n_threads - half, half);
      } catch (const std::system_error &) {
        // The system has no thread to spare: this one does it all.
      }
    if (!other.joinable()) build_node(2 * node + 1, leaf, left, thread, 1);
    build_node(2 * node + 2, leaf + left, leaves_below - left, thread, n_threads - half);
    if (other.joinable()) other.join();
  }

  // Writes the node's box, returns its widest dimension.
  int64_t bound(int64_t node, int64_t begin, int64_t end) {
    double *lower = boxes + node * 2 * d, *upper = lower + d;
    for (int64_t j = 0; j < d; j++) lower[j] = INFINITY, upper[j] = -INFINITY;
    for (int64_t i = begin; i < end; i++) {
      const double *row = points + i * d;
      for (int64_t j = 0; j < d; j++) {
        lower[j] = row[j] < lower[j] ? row[j] : lower[j];
        upper[j] = row[j] > upper[j] ? row[j] : upper[j];
      }
    }
    int64_t widest = 0;
    for (int64_t j = 1; j < d; j++)
      if (upper[j] - lower[j] > upper[widest] - lower[widest]) widest = j;
    return widest;
  }

  // Moves the rows with the smallest keys before middle. Splitting by position rather than by
  // value keeps the leaves full when rows are equal. Only misplaced rows move.
  void split(int64_t begin, int64_t middle, int64_t end, int64_t dimension) {
    Key *first = keys.data() + begin, *mid = keys.data() + middle, *last = keys.data() + end;
    for (int64_t i = begin; i < end; i++) keys[i] = {points[i * d + dimension], int32_t(i)};
    std::nth_element(first, mid, last);
    for (Key *from_right = mid, *from_left = first;; from_right++, from_left++) {
      while (from_left < mid && from_left->position < middle) from_left++;
      if (from_left == mid) break;
      while (from_right->position >= middle) from_right++;
      const int64_t a = from_left->position, b = from_right->position;
      std::swap_ranges(points + a * d, points + a * d + d, points + b * d);
      std::swap(order[a], order[b]);
    }
  }

  // A leaf's rows (L, d) to (d, L), in place.
  void transpose(int64_t begin, int64_t end, std::vector<double> &block) {
    double *rows = points + begin * d;
    std::copy(rows, rows + (end - begin) * d, block.begin());
    for (int64_t j = 0; j < d; j++)
      for (int64_t i = 0; i < L; i++)
        rows[j * L + i] = i < end - begin ? block[i * d + j] : NAN;
  }
};

}  // namespace lsgp
