// SPDX-License-Identifier: BSD-3-Clause
// The tree of _core/tree.h, a query, and what a warp has found for it. The squared distance is the
// float64 sum of squares in the order of the dimensions, every operation rounded, and what is found is
// ordered by (squared distance, number), so that a neighborhood is the one that the host finds.
#pragma once

namespace lsgp {

constexpr int WARP = 32;
inline double product(double a, double b) { return __dmul_rn(a, b); }
inline double plus(double a, double b) { return __dadd_rn(a, b); }
inline unsigned ballot(bool is_true) { return __ballot_sync(ALL_LANES, is_true); }
inline int n_set(unsigned bits) { return __popc(bits); }

constexpr int LARGEST_DEPTH = 40; // of a tree whose rows are 32-bit numbers

struct Tree {
  const double *leaves;  // (n_leaves, d, L), L points per leaf
  const int *order;      // (n_leaves, L)
  const double *boxes;   // (2 n_leaves - 1, 2, d)
  long long n_leaves, first_deepest, n_deepest;
  int d;

  Tree(const double *leaves, const int *order, const double *boxes, long long n_leaves, int d)
      : leaves(leaves), order(order), boxes(boxes), n_leaves(n_leaves), first_deepest(0), d(d) {
    while (2 * first_deepest + 1 < 2 * n_leaves - 1) first_deepest = 2 * first_deepest + 1;
    n_deepest = 2 * n_leaves - 1 - first_deepest;
  }
  bool is_leaf(long long node) const { return node >= n_leaves - 1; }
  long long position(long long leaf) const {
    return leaf >= first_deepest ? leaf - first_deepest : n_deepest + leaf - (n_leaves - 1);
  }
};

struct Query {
  const double *z;       // (d,) in units
  const double *factor;  // (d,) unit / lengthscale; null: all 1
  const double *unit;    // (d,)
  const int *groups;     // (n,)
  long long n_groups;
  int excluded_row, excluded_group;
  double squared_radius;  // that excludes; 0: none

  // point: coordinate j at point[j * L]
  double distance(const double *point, int d, int L) const {
    double sum = 0;
    for (int j = 0; j < d; j++) {
      double gap = point[j * L] - z[j];
      if (factor) gap = product(gap, factor[j]);
      sum = plus(sum, product(gap, gap));
    }
    return sum;
  }
  bool admits(int row, const double *point, int d, int L) const {
    if (row < 0 || row == excluded_row) return false;
    if (excluded_group >= 0 && row < n_groups && groups[row] == excluded_group) return false;
    if (squared_radius <= 0) return true;
    double sum = 0;
    for (int j = 0; j < d; j++) {
      const double gap = product(unit[j], point[j * L] - z[j]);
      sum = plus(sum, product(gap, gap));
    }
    return sum >= squared_radius;
  }
  double gap_to_box(const double *box, int j, int d) const {
    const double below = box[j] - z[j], above = z[j] - box[d + j];
    double gap = below > above ? below : above;
    gap = gap > 0 ? gap : 0;
    return factor ? gap * factor[j] : gap;
  }
};

// The candidates of one query, which its warp keeps in shared memory.
struct Found {
  double *distance;  // (size,)
  int *row;          // (size,)
  int lane, size, k, count;
  double limit;  // squared distance above which points and boxes are dropped
  double last_distance;
  int last_row;  // the k-th nearest when last sorted: others must come before it

  // A bound that surely admits every point of this squared distance, however sums are rounded.
  static double with_slack(double threshold, int d) {
    return threshold * (1 + double(d + 4) * 8.881784197001252e-16) + 1e-290;
  }
  bool is_before(int a, int b) const {
    return distance[a] < distance[b] || (distance[a] == distance[b] && row[a] < row[b]);
  }
  void add(bool passes, double value, int number) {
    const unsigned all = ballot(passes);
    const int place = count + n_set(all & ((1u << lane) - 1));
    if (passes && place < size) distance[place] = value, row[place] = number;
    count += n_set(all);
  }
  // Bitonic, by the warp, of the next power of two.
  void sort() {
    int n = 2;
    while (n < count) n *= 2;
    for (int i = count + lane; i < n; i += WARP) distance[i] = INFINITY, row[i] = 0x7fffffff;
    __syncwarp();
    for (int span = 2; span <= n; span *= 2)
      for (int stride = span / 2; stride; stride /= 2) {
        for (int e = lane; e < n / 2; e += WARP) {
          const int a = 2 * e - (e & (stride - 1)), b = a + stride;
          const bool is_rising = (a & span) == 0;
          if (is_before(is_rising ? b : a, is_rising ? a : b)) {
            const double other = distance[a];
            const int number = row[a];
            distance[a] = distance[b], row[a] = row[b];
            distance[b] = other, row[b] = number;
          }
        }
        __syncwarp();
      }
  }
  void keep_nearest(int d) {
    sort();
    if (count < k) return;
    count = k;
    last_distance = distance[k - 1], last_row = row[k - 1];
    limit = with_slack(last_distance, d);
    __syncwarp();
  }
};

}  // namespace lsgp
