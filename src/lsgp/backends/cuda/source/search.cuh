// SPDX-License-Identifier: BSD-3-Clause
// Exact neighbor search: a warp walks the tree for one query, depth first, and the points of a leaf
// are its lanes'.
#pragma once

namespace lsgp {

constexpr int LEAF = 64;       // points per leaf
constexpr int FEW_INPUTS = 6;  // every lane measures a box; with more, each lane some inputs of it

struct Postponed {
  double distance;
  long long node;
};

// IS_NEAREST: the k nearest; else all within found.last_distance, or their number alone if there is
// no room for them.
template <bool IS_NEAREST>
inline void search(const Tree &tree, const LeafPositions &positions, const Query &query,
                   Found &found, Postponed *stack) {
  const int d = int(tree.d), lane = found.lane;
  int height = 0;
  double distance = 0;
  long long node = 0;
  while (true) {
    while (distance <= found.limit && !positions.is_leaf(node)) {
      const double *box = tree.boxes + (2 * node + 1) * 2 * d;  // of both children, one after another
      double near = 0, far = 0;
      const bool is_shared = d > FEW_INPUTS;
      for (int j = is_shared ? lane : 0; j < d; j += is_shared ? WARP : 1) {
        const double left = gap_to_box(query, box, j, d),
                     right = gap_to_box(query, box + 2 * d, j, d);
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
      const long long leaf = positions(node);
      const double *points = tree.leaves + leaf * d * LEAF;
      for (int begin = 0; begin < LEAF; begin += WARP) {
        const int p = begin + lane, row = tree.order[leaf * LEAF + p];
        const double own = squared_distance(query, points + p, d, LEAF);
        const bool is_before = own < found.last_distance ||
                               (own == found.last_distance && (!IS_NEAREST || row < found.last_row));
        found.add(is_before && query.admits(row, points + p, d, LEAF), own, row);
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
  const lsgp::LeafPositions positions(n_leaves);
  const lsgp::Query query(queries, q, d, factor, lsgp::Exclusions{});
  long long node = 0;
  while (!positions.is_leaf(node)) {
    node = 2 * node + 1;
    const double *box = boxes + node * 2 * d;
    double left = 0, right = 0;
    for (int j = 0; j < d; j++) {
      const double a = lsgp::gap_to_box(query, box, j, d),
                   b = lsgp::gap_to_box(query, box + 2 * d, j, d);
      left += a * a;
      right += b * b;
    }
    node += right < left;
  }
  leaf[q] = int(positions(node));
}

// One warp per query, in this order: those that are near each other read the same leaves. Neighbors
// (q, k) are the k nearest, or, with a squared radius, all that are within it, nearest first; counts
// (q,) of these. Without room for candidates they are only counted. Farthest (q,) is the squared
// distance of the k-th, infinite if there are fewer.
extern "C" __global__ void find(
    const double *leaves, const int *order, const double *boxes, long long n_leaves, int d,
    const double *queries, const double *factor, const int *rows, const double *radii,
    const double *unit, const int *groups, const int *query_groups, long long n_groups,
    long long n_queries, const long long *turns, int k, double squared_radius, int size,
    int *neighbors, int *counts, double *farthest) {
  LSGP_SHARED_MEMORY;
  const int lane = lsgp::rank() % lsgp::WARP, warp = lsgp::rank() / lsgp::WARP,
            n_warps = lsgp::n_threads() / lsgp::WARP;
  // Of each warp: its stack, its distances, its rows.
  lsgp::Postponed *stacks = reinterpret_cast<lsgp::Postponed *>(lsgp_memory),
                  *stack = stacks + warp * lsgp::LARGEST_DEPTH;
  double *distances = reinterpret_cast<double *>(stacks + n_warps * lsgp::LARGEST_DEPTH);
  int *candidates = reinterpret_cast<int *>(distances + n_warps * size);
  const lsgp::Tree tree = {leaves, order, boxes, n_leaves, d, lsgp::LEAF};
  const lsgp::LeafPositions positions(n_leaves);
  const lsgp::Exclusions exclusions = {rows, radii, unit, groups, query_groups, n_groups};
  const long long n_places = n_leaves * lsgp::LEAF;
  for (long long turn = (long long)blockIdx.x * n_warps + warp; turn < n_queries;
       turn += (long long)gridDim.x * n_warps) {
    const long long q = turns ? turns[turn] : turn;
    const lsgp::Query query(queries, q, d, factor, exclusions);
    const bool is_nearest = squared_radius < 0;
    lsgp::Found found = {distances + warp * size, candidates + warp * size, lane, size,
                         int(k < n_places ? k : n_places), 0, INFINITY, INFINITY, 0x7fffffff};
    if (is_nearest) {
      lsgp::search<true>(tree, positions, query, found, stack);
    } else {
      found.limit = lsgp::with_slack(squared_radius, d);
      found.last_distance = squared_radius;
      lsgp::search<false>(tree, positions, query, found, stack);
    }
    if (size) found.sort();
    for (int r = lane; r < k; r += lsgp::WARP)
      neighbors[q * k + r] = r < found.count ? found.row[r] : -1;
    if (lane == 0 && counts) counts[q] = found.count;
    if (lane == 0 && farthest) farthest[q] = k <= found.count ? found.distance[k - 1] : INFINITY;
    __syncwarp();
  }
}
