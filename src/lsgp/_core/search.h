// SPDX-License-Identifier: BSD-3-Clause
// Exact neighbor search: depth first through the tree, its leaves scanned with SIMD. (Of many
// queries and inputs, `nearest.h` asks the codes of points first.)
//
// The tree's points and the queries are in units of the tree's own. A search is in any metric of
// one lengthscale per dimension: it multiplies each difference by factor = unit / lengthscale. A
// box bounds its points in all of these metrics alike, because rounded differences and products
// with a positive factor keep their order. SCALED is false where every factor is 1: in 8 and more
// dimensions, a search without the product takes a fifth less time.
//
// The result is unique: neighbors are ordered by (squared distance, row), and the squared distance
// is the float64 sum of squares in the order of the dimensions, every operation rounded. Nothing
// here may depend on the tree's shape, on the order of the queries, or on whether the instruction
// set has fused multiply-adds. Hence the two steps of a scan: a fast filter that may be contracted,
// with a slack that covers its rounding, then the exact distance of the few points that pass.
// (The product with the factor is rounded in both: its square is what may be fused.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "candidates.h"
#include "query.h"
#include "simd.h"
#include "tree.h"

namespace lsgp {

// With more inputs, the filter takes those first that points differ most in: mostly the first few
// tell that a point is too far, where a model has few inputs that matter. 64 neighbors of 100,000
// rows of 128 inputs, of which 10 matter, are found in half the time (0.9 ms).
constexpr int64_t MANY_INPUTS = 16;
// Inputs after which the filter looks whether any point is left.
constexpr int64_t N_AT_A_TIME = 8;

// An input, and the square of the tree's width along it in the metric.
struct Spread {
  double square;
  int32_t input;
};

// The widest first.
inline std::vector<Spread> spreads_of(const Tree &tree, const double *factor) {
  std::vector<Spread> spreads(tree.d);
  for (int64_t j = 0; j < tree.d; j++) {
    const double width = (tree.box(0)[tree.d + j] - tree.box(0)[j]) * (factor ? factor[j] : 1.0);
    spreads[j] = {width * width, int32_t(j)};
  }
  std::stable_sort(spreads.begin(), spreads.end(),
                   [](const Spread &a, const Spread &b) { return a.square > b.square; });
  return spreads;
}

// The inputs in the order of the tree's width along them in the metric; empty if there are few, or
// if no few of them matter most: then all in a row are read faster.
inline std::vector<int32_t> inputs_by_spread(const Tree &tree, const double *factor) {
  std::vector<int32_t> order;
  if (tree.d <= MANY_INPUTS) return order;
  double first = 0, rest = 0;
  for (const Spread &spread : spreads_of(tree, factor)) {
    (int64_t(order.size()) < MANY_INPUTS ? first : rest) += spread.square;
    order.push_back(spread.input);
  }
  if (!(first > rest)) order.clear();
  return order;
}

// A lower bound of the squared distance to any point of a box, up to the filter's slack. Of many
// inputs, by those alone that matter most.
template <bool SCALED>
inline double box_distance(const double *box, const Query &query, int64_t d) {
  constexpr int W = Simd<double>::W;
  const double *lower = box, *upper = box + d;
  if (query.by_spread) {
    double sum = 0;
    for (int64_t i = 0; i < MANY_INPUTS; i++) {
      const int64_t j = query.by_spread[i];
      const double below = lower[j] - query.z[j], above = query.z[j] - upper[j];
      double gap = below > above ? below : above;
      gap = gap > 0 ? gap : 0;
      if (SCALED) gap *= query.factor[j];
      sum += gap * gap;
    }
    return sum;
  }
  const VecD zero = {};
  VecD sums = {};
  int64_t j = 0;
  for (; j + W <= d; j += W) {
    const VecD q = load(query.z + j), below = load(lower + j) - q, above = q - load(upper + j);
    VecD gap = below > above ? below : above;
    gap = gap > zero ? gap : zero;
    if (SCALED) gap *= load(query.factor + j);
    sums += gap * gap;
  }
  double sum = 0;
  for (int l = 0; l < W; l++) sum += sums[l];
  for (; j < d; j++) {
    const double below = lower[j] - query.z[j], above = query.z[j] - upper[j];
    double gap = below > above ? below : above;
    gap = gap > 0 ? gap : 0;
    if (SCALED) gap *= query.factor[j];
    sum += gap * gap;
  }
  return sum;
}

// Adds the squared differences of some points in each input, the widest first, until all are beyond
// the limit, in which case none is left, and the answer is false.
template <bool SCALED, int U>
inline bool add_by_spread(const double *points, const Query &query, int64_t d, int64_t L,
                          double limit, VecD (&sums)[U]) {
  constexpr int W = Simd<double>::W;
  for (int64_t begin = 0; begin < d; begin += N_AT_A_TIME) {
    for (int64_t i = begin; i < std::min(begin + N_AT_A_TIME, d); i++) {
      const int64_t j = query.by_spread[i];
      const VecD q = splat(query.z[j]), f = splat(SCALED ? query.factor[j] : 1.0);
#pragma GCC unroll 8
      for (int u = 0; u < U; u++) {
        VecD gap = load(points + j * L + u * W) - q;
        if (SCALED) gap *= f;
        sums[u] += gap * gap;
      }
    }
    unsigned left = 0;
#pragma GCC unroll 8
    for (int u = 0; u < U; u++) left |= true_lanes(sums[u] <= splat(limit));
    if (!left) return false;
  }
  return true;
}

template <bool SCALED, class Found>
inline void scan_leaf(const Tree &tree, int64_t leaf, const Query &query, Found &found) {
  constexpr int W = Simd<double>::W;
  constexpr int U = W == 8 ? 8 : 4;  // vectors in flight: hides latency, fits the registers
  const int64_t d = tree.d, L = tree.L;
  const double *points = tree.leaves + leaf * d * L;
  const int32_t *order = tree.order + leaf * L;
  for (int64_t begin = 0; begin < L; begin += U * W) {
    VecD sums[U] = {};
    if (query.by_spread) {
      if (!add_by_spread<SCALED>(points + begin, query, d, L, found.limit, sums)) continue;
    } else for (int64_t j = 0; j < d; j++) {
      const VecD q = splat(query.z[j]), f = splat(SCALED ? query.factor[j] : 1.0);
#pragma GCC unroll 8
      for (int u = 0; u < U; u++) {
        VecD gap = load(points + j * L + begin + u * W) - q;
        if (SCALED) gap *= f;
        sums[u] += gap * gap;
      }
    }
    const VecD limit = splat(found.limit);
    uint64_t passed = 0;
#pragma GCC unroll 8
    for (int u = 0; u < U; u++) passed |= uint64_t(true_lanes(sums[u] <= limit)) << (u * W);
    while (passed) {
      const int first = __builtin_ctzll(passed) / W * W;
      unsigned lanes = unsigned(passed >> first) & ((1u << W) - 1);
      passed &= ~(uint64_t(lanes) << first);
      const double *vector = points + begin + first;
      VecD distances = {};
      for (int64_t j = 0; j < d; j++) {
        VecD gap = load(vector + j * L) - query.z[j];
        if (SCALED) gap = rounded(gap * query.factor[j]);
        distances += rounded(gap * gap);
      }
      double distance[W];
      std::memcpy(distance, &distances, sizeof distance);
      for (; lanes; lanes &= lanes - 1) {
        const int l = __builtin_ctz(lanes);
        const int32_t row = order[begin + first + l];
        const Candidate candidate = candidate_of(distance[l], row);
        if (found.admits(candidate) && query.admits(row, vector + l, d, L)) found.add(candidate);
      }
    }
  }
  found.leaf_done();
}

// Depth first, the nearer child first. Returns the number of leaves scanned.
template <bool SCALED, class Found>
inline int64_t search(const Tree &tree, const LeafPositions &positions, const Query &query,
                      Found &found) {
  struct Postponed {
    double distance;
    int64_t node;
  };
  Postponed stack[64];  // at most one per level
  int height = 0;
  int64_t n_scanned = 0;
  stack[height++] = {0.0, 0};
  while (height) {
    auto [distance, node] = stack[--height];
    while (distance <= found.limit && !positions.is_leaf(node)) {
      int64_t near = 2 * node + 1, far = near + 1;
      distance = box_distance<SCALED>(tree.box(near), query, tree.d);
      double far_distance = box_distance<SCALED>(tree.box(far), query, tree.d);
      if (far_distance < distance) {
        std::swap(near, far);
        std::swap(distance, far_distance);
      }
      if (far_distance <= found.limit) stack[height++] = {far_distance, far};
      node = near;
    }
    if (!(distance <= found.limit)) continue;
    scan_leaf<SCALED>(tree, positions(node), query, found);
    n_scanned++;
  }
  return n_scanned;
}

constexpr int PACK = 8;  // queries that are searched together, a multiple of any vector's lanes

// The squared distances of a pack of queries from one box, or their limits.
struct PackDistances {
  static constexpr int W = Simd<double>::W;
  VecD lanes[PACK / W] = {};

  // z: (d, PACK)
  template <bool SCALED>
  static PackDistances from_box(const double *box, const double *z, const double *factor,
                                const int32_t *by_spread, int64_t d) {
    const VecD zero = {};
    PackDistances distances;
    for (int64_t i = 0; i < (by_spread ? MANY_INPUTS : d); i++) {
      const int64_t j = by_spread ? by_spread[i] : i;
      for (int v = 0; v < PACK / W; v++) {
        const VecD q = load(z + j * PACK + v * W), below = box[j] - q, above = q - box[d + j];
        VecD gap = below > above ? below : above;
        gap = gap > zero ? gap : zero;
        if (SCALED) gap *= factor[j];
        distances.lanes[v] += gap * gap;
      }
    }
    return distances;
  }
  void set(int query, double distance) { lanes[query / W][query % W] = distance; }
  // Bit p is set where query p is no farther than its limit.
  unsigned reached(const PackDistances &limits) const {
    unsigned bits = 0;
    for (int v = 0; v < PACK / W; v++)
      bits |= true_lanes(lanes[v] <= limits.lanes[v]) << (v * W);
    return bits;
  }
  double sum() const {
    VecD total = lanes[0];
    for (int v = 1; v < PACK / W; v++) total += lanes[v];
    double sum = 0;
    for (int l = 0; l < W; l++) sum += total[l];
    return sum;
  }
};

// The same search for a pack of queries, so that a leaf comes from memory once for all of them.
template <bool SCALED>
inline int64_t search_pack(const Tree &tree, const LeafPositions &positions,
                           const Query (&queries)[PACK], NearestFound (&found)[PACK]) {
  struct Postponed {
    PackDistances distances;
    int64_t node;
  };
  Postponed stack[64];
  int height = 0;
  int64_t n_scanned = 0;
  PackDistances limits;
  const double *factor = queries[0].factor;
  const int32_t *order = queries[0].by_spread;
  std::vector<double> z(tree.d * PACK);
  for (int p = 0; p < PACK; p++) {
    limits.set(p, found[p].limit);
    for (int64_t j = 0; j < tree.d; j++) z[j * PACK + p] = queries[p].z[j];
  }
  stack[height++] = {{}, 0};
  while (height) {
    auto [distances, node] = stack[--height];
    while (distances.reached(limits) && !positions.is_leaf(node)) {
      int64_t near = 2 * node + 1, far = near + 1;
      distances = PackDistances::from_box<SCALED>(tree.box(near), z.data(), factor, order, tree.d);
      PackDistances far_distances =
          PackDistances::from_box<SCALED>(tree.box(far), z.data(), factor, order, tree.d);
      if (far_distances.sum() < distances.sum()) {
        std::swap(near, far);
        std::swap(distances, far_distances);
      }
      if (far_distances.reached(limits)) stack[height++] = {far_distances, far};
      node = near;
    }
    for (unsigned lanes = distances.reached(limits); lanes; lanes &= lanes - 1) {
      const int p = __builtin_ctz(lanes);
      scan_leaf<SCALED>(tree, positions(node), queries[p], found[p]);
      limits.set(p, found[p].limit);
      n_scanned++;
    }
  }
  return n_scanned / PACK;
}

// The leaf in whose box a query is, or nearly so.
template <bool SCALED>
inline int64_t home_leaf(const Tree &tree, const LeafPositions &positions, const Query &query) {
  int64_t node = 0;
  while (!positions.is_leaf(node)) {
    node = 2 * node + 1;
    node += box_distance<SCALED>(tree.box(node + 1), query, tree.d) <
            box_distance<SCALED>(tree.box(node), query, tree.d);
  }
  return positions(node);
}

// The numbers of queries in the order of the tree: consecutive ones scan the same leaves.
template <bool SCALED>
inline std::vector<int64_t> in_tree_order(const Tree &tree, const double *queries, int64_t q,
                                          const double *factor, const int32_t *by_spread) {
  const LeafPositions positions(tree.n_leaves);
  const Exclusions none{};
  std::vector<std::pair<int64_t, int64_t>> sorted(q);
  for (int64_t i = 0; i < q; i++) {
    const Query query(queries, i, tree.d, factor, none, by_spread);
    sorted[i] = {home_leaf<SCALED>(tree, positions, query), i};
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> order(q);
  for (int64_t i = 0; i < q; i++) order[i] = sorted[i].second;
  return order;
}

constexpr int TOGETHER = 4;  // points whose distances are summed side by side: hides latency

inline void prefetch_point(const Tree &tree, int64_t place) {
  const double *point = tree.leaves + place / tree.L * tree.d * tree.L + place % tree.L;
  for (int64_t j = 0; j < tree.d; j++) __builtin_prefetch(point + j * tree.L);
}

// The squares of some points' distances, as the search above rounds them.
// places: (TOGETHER,); squares: (TOGETHER,), written
template <bool SCALED>
inline void exact_distances(const Tree &tree, const Query &query, const int64_t *places,
                            double *squares) {
  const double *points[TOGETHER];
  for (int c = 0; c < TOGETHER; c++) {
    points[c] = tree.leaves + places[c] / tree.L * tree.d * tree.L + places[c] % tree.L;
    squares[c] = 0;
  }
  for (int64_t j = 0; j < tree.d; j++) {
    const double z = query.z[j], factor = SCALED ? query.factor[j] : 1.0;
    for (int c = 0; c < TOGETHER; c++) {
      double gap = points[c][j * tree.L] - z;
      if (SCALED) gap = rounded(gap * factor);
      squares[c] += rounded(gap * gap);
    }
  }
}

// counts: (q,), right even beyond max_count, where the query's neighbors are left out
// neighbors: those of all queries, one after another
template <bool SCALED>
inline void find_within(const Tree &tree, const double *queries, int64_t q, const double *factor,
                        double squared_radius, int64_t max_count, const Exclusions &exclusions,
                        int64_t *counts, std::vector<int32_t> &neighbors) {
  const LeafPositions positions(tree.n_leaves);
  const std::vector<int32_t> by_spread = inputs_by_spread(tree, factor);
  const int32_t *order = by_spread.empty() ? nullptr : by_spread.data();
  WithinFound found(squared_radius, tree.d, max_count);
  for (int64_t i = 0; i < q; i++) {
    found.start();
    search<SCALED>(tree, positions, Query(queries, i, tree.d, factor, exclusions, order), found);
    counts[i] = found.finish();
    if (counts[i] > max_count) continue;
    for (const Candidate candidate : found.sorted()) neighbors.push_back(row_of(candidate));
  }
}

}  // namespace lsgp
