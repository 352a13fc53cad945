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
#include "simd.h"
#include "tree.h"

namespace lsgp {

// With more inputs, the filter takes those first that points differ most in: mostly the first few
// tell that a point is too far, where a model has few inputs that matter.
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
  const auto add_square = [&](int64_t j, double &sum) {
    double gap = gap_to_box(lower[j], upper[j], query.z[j]);
    if (SCALED) gap *= query.factor[j];
    sum += gap * gap;
  };
  double sum = 0;
  if (query.by_spread) {
    for (int64_t i = 0; i < MANY_INPUTS; i++) add_square(query.by_spread[i], sum);
    return sum;
  }
  VecD sums = {};
  int64_t j = 0;
  for (; j + W <= d; j += W) {
    VecD gap = gap_to_box(load(lower + j), load(upper + j), load(query.z + j));
    if (SCALED) gap *= load(query.factor + j);
    sums += gap * gap;
  }
  sum = sum_of_lanes(sums);
  for (; j < d; j++) add_square(j, sum);
  return sum;
}

template <bool SCALED, class Found>
inline void scan_leaf(const Tree &tree, int64_t leaf, const Query &query, Found &found) {
  constexpr int W = Simd<double>::W;
  constexpr int U = W == 8 ? 8 : 4;  // vectors in flight: hides latency, fits the registers
  const int64_t d = tree.d, L = tree.L;
  const double *points = tree.leaves + leaf * d * L;
  const int32_t *order = tree.order + leaf * L;
  // Of many inputs the widest first, until no point is left.
  const int64_t size = query.by_spread ? N_AT_A_TIME : d;
  for (int64_t begin = 0; begin < L; begin += U * W) {
    VecD sums[U] = {};
    uint64_t passed = 0;
    for (int64_t i = 0; i < d;) {
      for (const int64_t stop = std::min(i + size, d); i < stop; i++) {
        const int64_t j = query.by_spread ? query.by_spread[i] : i;
        const VecD q = splat(query.z[j]), f = splat(SCALED ? query.factor[j] : 1.0);
#pragma GCC unroll 8
        for (int u = 0; u < U; u++) {
          VecD gap = load(points + j * L + begin + u * W) - q;
          if (SCALED) gap *= f;
          sums[u] += gap * gap;
        }
      }
      passed = 0;
#pragma GCC unroll 8
      for (int u = 0; u < U; u++)
        passed |= uint64_t(true_lanes(sums[u] <= splat(found.limit))) << (u * W);
      if (!passed) break;
    }
    while (passed) {
      const int first = __builtin_ctzll(passed) / W * W;
      unsigned lanes = unsigned(passed >> first) & ((1u << W) - 1);
      passed &= ~(uint64_t(lanes) << first);
      const double *vector = points + begin + first;
      VecD distances = {};
      for (int64_t j = 0; j < d; j++) {
        VecD gap = load(vector + j * L) - query.z[j];
        if (SCALED) gap = product(gap, splat(query.factor[j]));
        distances += product(gap, gap);
      }
      for (; lanes; lanes &= lanes - 1) {
        const int l = __builtin_ctz(lanes);
        const int32_t row = order[begin + first + l];
        const Candidate candidate = candidate_of(distances[l], row);
        if (found.admits(candidate) && query.admits(row, vector + l, d, L)) found.add(candidate);
      }
    }
  }
  found.leaf_done();
}

// Depth first, the nearer child first. What it is for, `seeker`, knows its distances from a box,
// whether they are within its limits, and which of two are nearer; and it scans leaves.
template <class Seeker>
inline void walk(const Tree &tree, const LeafPositions &positions, Seeker &seeker) {
  typedef typename Seeker::Distances Distances;
  struct Postponed {
    Distances distances;
    int64_t node;
  };
  Postponed stack[64];  // at most one per level
  int height = 0;
  stack[height++] = {{}, 0};
  while (height) {
    auto [distances, node] = stack[--height];
    while (seeker.reaches(distances) && !positions.is_leaf(node)) {
      int64_t near = 2 * node + 1, far = near + 1;
      distances = seeker.from_box(tree.box(near));
      Distances far_distances = seeker.from_box(tree.box(far));
      if (seeker.is_nearer(far_distances, distances)) {
        std::swap(near, far);
        std::swap(distances, far_distances);
      }
      if (seeker.reaches(far_distances)) stack[height++] = {far_distances, far};
      node = near;
    }
    if (seeker.reaches(distances)) seeker.scan(positions(node), distances);
  }
}

template <bool SCALED, class Found> struct OneSeeker {
  typedef double Distances;
  const Tree &tree;
  const Query &query;
  Found &found;
  int64_t n_scanned;

  double from_box(const double *box) const { return box_distance<SCALED>(box, query, tree.d); }
  bool reaches(double distance) const { return distance <= found.limit; }
  bool is_nearer(double a, double b) const { return a < b; }
  void scan(int64_t leaf, double) {
    scan_leaf<SCALED>(tree, leaf, query, found);
    n_scanned++;
  }
};

// Returns the number of leaves scanned.
template <bool SCALED, class Found>
inline int64_t search(const Tree &tree, const LeafPositions &positions, const Query &query,
                      Found &found) {
  OneSeeker<SCALED, Found> seeker = {tree, query, found, 0};
  walk(tree, positions, seeker);
  return seeker.n_scanned;
}

constexpr int PACK = 8;  // queries that are searched together, a multiple of any vector's lanes

// The same search for a pack of queries, so that a leaf comes from memory once for all of them.
template <bool SCALED> struct PackSeeker {
  static constexpr int W = Simd<double>::W;
  struct Distances {
    VecD lanes[PACK / W] = {};
  };
  const Tree &tree;
  const Query (&queries)[PACK];
  NearestFound (&found)[PACK];
  Distances limits;
  std::vector<double> z;  // (d, PACK)
  int64_t n_scanned = 0;

  PackSeeker(const Tree &tree, const Query (&queries)[PACK], NearestFound (&found)[PACK])
      : tree(tree), queries(queries), found(found), z(tree.d * PACK) {
    for (int p = 0; p < PACK; p++) {
      limits.lanes[p / W][p % W] = found[p].limit;
      for (int64_t j = 0; j < tree.d; j++) z[j * PACK + p] = queries[p].z[j];
    }
  }
  Distances from_box(const double *box) const {
    const int32_t *by_spread = queries[0].by_spread;
    Distances distances;
    for (int64_t i = 0; i < (by_spread ? MANY_INPUTS : tree.d); i++) {
      const int64_t j = by_spread ? by_spread[i] : i;
      const VecD lower = splat(box[j]), upper = splat(box[tree.d + j]);
      for (int v = 0; v < PACK / W; v++) {
        VecD gap = gap_to_box(lower, upper, load(z.data() + j * PACK + v * W));
        if (SCALED) gap *= queries[0].factor[j];
        distances.lanes[v] += gap * gap;
      }
    }
    return distances;
  }
  // Bit p is set where query p is no farther than its limit.
  unsigned reaches(const Distances &distances) const {
    unsigned bits = 0;
    for (int v = 0; v < PACK / W; v++)
      bits |= true_lanes(distances.lanes[v] <= limits.lanes[v]) << (v * W);
    return bits;
  }
  bool is_nearer(const Distances &a, const Distances &b) const { return sum(a) < sum(b); }
  static double sum(const Distances &distances) {
    VecD total = distances.lanes[0];
    for (int v = 1; v < PACK / W; v++) total += distances.lanes[v];
    return sum_of_lanes(total);
  }
  void scan(int64_t leaf, const Distances &distances) {
    for (unsigned lanes = reaches(distances); lanes; lanes &= lanes - 1) {
      const int p = __builtin_ctz(lanes);
      scan_leaf<SCALED>(tree, leaf, queries[p], found[p]);
      limits.lanes[p / W][p % W] = found[p].limit;
      n_scanned++;
    }
  }
};

// The numbers of queries in the order of the tree: consecutive ones scan the same leaves.
template <bool SCALED>
inline std::vector<int64_t> in_tree_order(const Tree &tree, const double *queries, int64_t q,
                                          const double *factor, const int32_t *by_spread) {
  const LeafPositions positions(tree.n_leaves);
  const Exclusions none{};
  // Of the leaf that a query is in, or nearly so.
  std::vector<std::pair<int64_t, int64_t>> sorted(q);
  for (int64_t i = 0; i < q; i++) {
    const Query query(queries, i, tree.d, factor, none, by_spread);
    int64_t node = 0;
    while (!positions.is_leaf(node)) {
      node = 2 * node + 1;
      node += box_distance<SCALED>(tree.box(node + 1), query, tree.d) <
              box_distance<SCALED>(tree.box(node), query, tree.d);
    }
    sorted[i] = {positions(node), i};
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> order(q);
  for (int64_t i = 0; i < q; i++) order[i] = sorted[i].second;
  return order;
}

constexpr int TOGETHER = 4;  // points whose distances are summed side by side: hides latency

// The first TOGETHER of some points with their distances, as the search above rounds them; points
// behind the last are the last one again. found: places in the tree, in the lower 32 bits
// candidates: (TOGETHER,), written
template <bool SCALED>
inline void measure(const Tree &tree, const Query &query, const uint64_t *found, int64_t count,
                    Candidate *candidates) {
  const double *points[TOGETHER];
  int32_t rows[TOGETHER];
  double squares[TOGETHER] = {};
  for (int c = 0; c < TOGETHER; c++) {
    const int64_t place = uint32_t(found[std::min<int64_t>(c, count - 1)]);
    points[c] = tree.point(place);
    rows[c] = tree.order[place];
  }
  for (int64_t j = 0; j < tree.d; j++) {
    const double z = query.z[j], factor = SCALED ? query.factor[j] : 1.0;
    for (int c = 0; c < TOGETHER; c++) {
      double gap = points[c][j * tree.L] - z;
      if (SCALED) gap = product(gap, factor);
      squares[c] += product(gap, gap);
    }
  }
  for (int c = 0; c < TOGETHER; c++) candidates[c] = candidate_of(squares[c], rows[c]);
}

// found: those of query i, of which there are `count`, in order
// neighbors: (q, k), written, -1 where there are fewer; distances: (q, k), squared, or null
inline void write_neighbors(const Candidate *found, int64_t count, int64_t i, int64_t k,
                            int32_t *neighbors, double *distances) {
  for (int64_t r = 0; r < k; r++) {
    neighbors[i * k + r] = r < count ? row_of(found[r]) : -1;
    if (distances) distances[i * k + r] = r < count ? distance_of(found[r]) : INFINITE;
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
