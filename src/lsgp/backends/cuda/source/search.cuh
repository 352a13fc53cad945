// SPDX-License-Identifier: BSD-3-Clause
// Exact neighbor search in the tree of _core/tree.h: a warp walks it for one query, depth first, and
// the points of a leaf are its lanes'. The squared distance is the float64 sum of squares in the
// order of the dimensions, every operation rounded, and neighbors are ordered by (squared distance,
// row), so that a neighborhood is the one that the host finds.
#pragma once

namespace lsgp {

constexpr int WARP = 32;
inline double product(double a, double b) { return __dmul_rn(a, b); }
inline double plus(double a, double b) { return __dadd_rn(a, b); }
inline unsigned ballot(bool is_true) { return __ballot_sync(ALL_LANES, is_true); }
inline int n_set(unsigned bits) { return __popc(bits); }

constexpr int LEAF = 64;          // points per leaf
constexpr int LARGEST_DEPTH = 40; // of a tree whose rows are 32-bit numbers
constexpr int FEW_INPUTS = 6;     // every lane measures a box; with more, each lane some inputs of it

struct Tree {
  const double *leaves;  // (n_leaves, d, LEAF)
  const int *order;      // (n_leaves, LEAF)
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

  // point: coordinate j at point[j * LEAF]
  double distance(const double *point, int d) const {
    double sum = 0;
    for (int j = 0; j < d; j++) {
      double gap = point[j * LEAF] - z[j];
      if (factor) gap = product(gap, factor[j]);
      sum = plus(sum, product(gap, gap));
    }
    return sum;
  }
  bool admits(int row, const double *point, int d) const {
    if (row < 0 || row == excluded_row) return false;
    if (excluded_group >= 0 && row < n_groups && groups[row] == excluded_group) return false;
    if (squared_radius <= 0) return true;
    double sum = 0;
    for (int j = 0; j < d; j++) {
      const double gap = product(unit[j], point[j * LEAF] - z[j]);
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
  int lane, size, k, count, n_sorted;
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

struct Postponed {
  double distance;
  long long node;
};

// IS_NEAREST: the k nearest; else all within found.last_distance, or their number alone if there is
// no room for them.
template <bool IS_NEAREST>
inline void search(const Tree &tree, const Query &query, Found &found, Postponed *stack) {
  const int d = tree.d, lane = found.lane;
  int height = 0;
  double distance = 0;
  long long node = 0;
  while (true) {
    while (distance <= found.limit && !tree.is_leaf(node)) {
      const double *box = tree.boxes + (2 * node + 1) * 2 * d;  // of both children, one after another
      double near = 0, far = 0;
      const bool is_shared = d > FEW_INPUTS;
      for (int j = is_shared ? lane : 0; j < d; j += is_shared ? WARP : 1) {
        const double left = query.gap_to_box(box, j, d), right = query.gap_to_box(box + 2 * d, j, d);
        near += left * left;
        far += right * right;
      }
      if (is_shared) near = reduce_lanes(near, Sum{}), far = reduce_lanes(far, Sum{});
      node = 2 * node + 1;
      long long other = node + 1;
      if (far < near) {
        const double swapped = near;
        near = far, far = swapped;
        other = node++;
      }
      if (far <= found.limit) {
        if (lane == 0) stack[height] = {far, other};
        height++;
      }
      distance = near;
    }
    if (distance <= found.limit) {
      const long long leaf = tree.position(node);
      const double *points = tree.leaves + leaf * d * LEAF;
      for (int begin = 0; begin < LEAF; begin += WARP) {
        const int p = begin + lane, row = tree.order[leaf * LEAF + p];
        const double own = query.distance(points + p, d);
        const bool is_before = own < found.last_distance ||
                               (own == found.last_distance && (!IS_NEAREST || row < found.last_row));
        found.add(is_before && query.admits(row, points + p, d), own, row);
      }
      __syncwarp();
      if (IS_NEAREST && (found.count > found.size - LEAF ||
                         (found.count >= found.k && found.limit == INFINITY)))
        found.keep_nearest(d);
    }
    if (!height) return;
    __syncwarp();
    height--;
    distance = stack[height].distance;
    node = stack[height].node;
    __syncwarp();
  }
}

}  // namespace lsgp

// The leaf in whose box each query is, or nearly so: a thread per query.
extern "C" __global__ void home(const double *boxes, long long n_leaves, int d,
                                const double *queries, const double *factor, long long n_queries,
                                int *leaf) {
  const long long q = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= n_queries) return;
  const lsgp::Tree tree(nullptr, nullptr, boxes, n_leaves, d);
  const lsgp::Query query = {queries + q * d, factor, nullptr, nullptr, 0, -1, -1, 0};
  long long node = 0;
  while (!tree.is_leaf(node)) {
    node = 2 * node + 1;
    const double *box = boxes + node * 2 * d;
    double left = 0, right = 0;
    for (int j = 0; j < d; j++) {
      const double a = query.gap_to_box(box, j, d), b = query.gap_to_box(box + 2 * d, j, d);
      left += a * a;
      right += b * b;
    }
    node += right < left;
  }
  leaf[q] = int(tree.position(node));
}

// One warp per query, in this order: those that are near each other read the same leaves. Neighbors
// (q, k) are the k nearest, or, with a squared radius, all that are within it, nearest first; counts
// (q,) of these. Without room for candidates they are only counted.
extern "C" __global__ void find(
    const double *leaves, const int *order, const double *boxes, long long n_leaves, int d,
    const double *queries, const double *factor, const int *rows, const double *radii,
    const double *unit, const int *groups, const int *query_groups, long long n_groups,
    long long n_queries, const long long *turns, int k, double squared_radius, int size,
    int *neighbors, int *counts) {
  LSGP_SHARED_MEMORY;
  const int lane = lsgp::rank() % lsgp::WARP, warp = lsgp::rank() / lsgp::WARP,
            n_warps = lsgp::n_threads() / lsgp::WARP;
  // Of each warp: its stack, its distances, its rows.
  lsgp::Postponed *stacks = reinterpret_cast<lsgp::Postponed *>(lsgp_memory);
  double *distances = reinterpret_cast<double *>(stacks + n_warps * lsgp::LARGEST_DEPTH);
  int *candidates = reinterpret_cast<int *>(distances + n_warps * size);
  const lsgp::Tree tree(leaves, order, boxes, n_leaves, d);
  const long long n_places = n_leaves * lsgp::LEAF;
  for (long long turn = (long long)blockIdx.x * n_warps + warp; turn < n_queries;
       turn += (long long)gridDim.x * n_warps) {
    const long long q = turns ? turns[turn] : turn;
    const lsgp::Query query = {queries + q * d,
                               factor,
                               unit,
                               groups,
                               n_groups,
                               rows ? rows[q] : -1,
                               groups ? query_groups[q] : -1,
                               radii ? radii[q] * radii[q] : 0};
    const bool is_nearest = squared_radius < 0;
    lsgp::Found found = {distances + warp * size, candidates + warp * size, lane, size,
                         int(k < n_places ? k : n_places), 0, 0, INFINITY, INFINITY, 0x7fffffff};
    if (is_nearest) {
      lsgp::search<true>(tree, query, found, stacks + warp * lsgp::LARGEST_DEPTH);
    } else {
      found.limit = lsgp::Found::with_slack(squared_radius, d);
      found.last_distance = squared_radius;
      lsgp::search<false>(tree, query, found, stacks + warp * lsgp::LARGEST_DEPTH);
    }
    if (size) found.sort();
    for (int r = lane; r < k; r += lsgp::WARP)
      neighbors[q * k + r] = r < found.count ? found.row[r] : -1;
    if (lane == 0 && counts) counts[q] = found.count;
    __syncwarp();
  }
}
