// SPDX-License-Identifier: BSD-3-Clause
// The nearest points of many queries: by codes first where that pays, with a proof that none is
// missed.
//
// In many dimensions a search scans much of the data, and scans codes several times as fast as
// coordinates. Inputs that hardly matter to the metric have no codes: without them distances are
// only shorter. A search by codes keeps some more points than are wanted. What it dropped is at
// least as far, by its codes, as the last one that it kept; its true distance is less by no more
// than the codes moved it. If that is still beyond the last of the wanted among those kept, by
// exact distances in all inputs, these are the nearest of all. If not, the plain search has the
// last word, and more are kept for the queries that follow. So the neighbors are the same.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "candidates.h"
#include "codes.h"
#include "leaf_walk.h"
#include "search.h"
#include "simd.h"

namespace lsgp {

// Inputs without codes have at most this share of the squared diagonal of all points. They are
// then a tenth or so of the squared distance of neighbors, which are much nearer than most points.
constexpr double LARGEST_REST = 0.02;
// Leaves that a plain search scans for a query. Of fewer, codes save nothing.
constexpr int64_t FEWEST_SCANNED = 48;
// To make the codes of a leaf takes as long as they save in scanning it so many times.
constexpr int64_t SCANS_THAT_PAY = 16;
// Their mean tells how many others will scan, as if so many queries had scanned none before: a few
// that are far from all points are no reason.
constexpr int64_t N_BEFORE = 15;
// Bytes of codes. Each call makes its own, in each of its threads, beside all that memory is
// planned for.
constexpr int64_t LARGEST_CODES = int64_t(1) << 26;

// The inputs that have codes: the widest, or all, as they are, where fewer than half of them would be
// left out.
inline std::vector<int32_t> leading_inputs(const Tree &tree, const double *factor) {
  const std::vector<Spread> spreads = spreads_of(tree, factor);
  double total = 0;
  for (const Spread &spread : spreads) total += spread.square;
  std::vector<int32_t> inputs;
  for (double rest = total; 2 * int64_t(inputs.size()) <= tree.d;) {
    // In the steps of the filter.
    if (!inputs.empty() && inputs.size() % N_AT_A_TIME == 0 && rest <= LARGEST_REST * total)
      return inputs;
    rest -= spreads[inputs.size()].square;
    inputs.push_back(spreads[inputs.size()].input);
  }
  inputs.resize(tree.d);
  std::iota(inputs.begin(), inputs.end(), 0);
  return inputs;
}

// The codes of a tree in the inputs that matter to a metric.
struct LeadingCodes {
  const std::vector<int32_t> inputs;
  const std::vector<double> boxes, factor;  // (n_nodes, 2, m); (m,), empty if all are 1
  std::vector<uint8_t> codes, bounds;
  const CodedTree coded;

  LeadingCodes(const Tree &tree, const double *factor)
      : inputs(leading_inputs(tree, factor)),
        boxes(of_rows(tree.boxes, 2 * tree.n_nodes(), tree.d)),
        factor(of_rows(factor, factor ? 1 : 0, tree.d)),
        codes(tree.n_leaves * inputs.size() * tree.L),
        bounds(Groups(tree.n_leaves).n_groups * 2 * inputs.size() * GROUP),
        coded{tree, codes.data(), bounds.data(), boxes.data(), int64_t(inputs.size()),
              int64_t(inputs.size()) * tree.L} {
    encode_tree(tree, boxes.data(), inputs.data(), coded.m, codes.data(), bounds.data());
  }
  LeadingCodes(const LeadingCodes &) = delete;

  // These inputs of rows (n, d).
  std::vector<double> of_rows(const double *rows, int64_t n, int64_t d) const {
    std::vector<double> own;
    own.reserve(n * inputs.size());
    for (int64_t r = 0; r < n; r++)
      for (const int32_t j : inputs) own.push_back(rows[r * d + j]);
    return own;
  }
};

// The nearest points by their codes. Of each leaf that is no farther than the farthest point kept
// so far, all codes are scanned.
template <bool SCALED> class CodedSearch {
 public:
  // The most by which codes moved a point or a box, in all that was opened.
  float error = 0;

  // factor: (m,) of the inputs that have codes, or null where SCALED is false
  CodedSearch(const CodedTree &coded, const double *factor)
      : coded(coded), tree(coded.tree), walk(coded, 1.0, factor) {}

  double unit() const { return walk.unit; }
  // Squared distance by codes above which points and boxes were dropped, of the last search.
  float limit() const { return walk.kept.limit; }

  // Places in the tree of the n_kept nearest by their codes, in no order.
  // query: in the inputs that have codes; whole: in all, which tells what it admits
  const Rough *find(const Query &query, const Query &whole_, int64_t n_kept, int64_t &n_found) {
    whole = &whole_, error = 0;
    walk.kept.start(n_kept, tree.L);
    walk.run(query, *this);
    return walk.kept.finish(n_found);
  }

 private:
  friend class LeafWalk<SCALED>;
  static constexpr int W = Simd<float>::W;
  static constexpr int64_t N_AHEAD = 2;

  const CodedTree coded;
  const Tree tree;
  LeafWalk<SCALED> walk;
  const Query *whole = nullptr;

  void push_below(int64_t node, const Query &query) { walk.push_children(node, query); }

  void enter(const float *, float squared_diagonal) {
    error = std::max(error, 0.5f * std::sqrt(squared_diagonal));  // codes are rounded
  }

  void end_scan(const Query &) {}

  void scan(const NearLeaf &leaf, const Query &query) {
    constexpr int U = W == 4 ? 4 : 64 / W < 8 ? 64 / W : 8;  // vectors in flight
    const int64_t m = coded.m, d = tree.d, L = tree.L;
    const float *width = walk.metrics() + leaf.opened * 2 * m, *at = width + m;
    const uint8_t *code = coded.codes + leaf.leaf * m * L;
    const int32_t *order = tree.order + leaf.leaf * L;
    for (int64_t begin = 0; begin < L; begin += U * W) {
      VecF sums[U] = {};
      uint64_t passed = 0;
      // Of many inputs the widest first, until no point is left: see `scan_leaf`.
      const int64_t size = query.by_spread ? N_AT_A_TIME : m;
      for (int64_t i = 0; i < m;) {
        for (const int64_t stop = std::min(i + size, m); i < stop; i++) {
          const int64_t j = query.by_spread ? query.by_spread[i] : i;
          const VecF w = splat(width[j]), q = splat(at[j]);
#pragma GCC unroll 8
          for (int u = 0; u < U; u++) {
            const VecF gap = load_codes(code + j * L + begin + u * W) * w - q;
            sums[u] += gap * gap;
          }
        }
        passed = 0;
#pragma GCC unroll 8
        for (int u = 0; u < U; u++)
          passed |= uint64_t(true_lanes(sums[u] < splat(limit()))) << (u * W);
        if (!passed) break;
      }
      float distances[U * W];
      std::memcpy(distances, sums, sizeof distances);
      for (; passed; passed &= passed - 1) {
        const int l = __builtin_ctzll(passed);
        const int64_t place = leaf.leaf * L + begin + l;
        const int32_t row = order[begin + l];
        const double *point = tree.leaves + leaf.leaf * d * L + begin + l;
        if (whole->admits(row, point, d, L))
          walk.kept.add(rough_of(distances[l], uint32_t(place)));
      }
    }
    walk.kept.some_added();
  }
};

template <bool SCALED> class ProvedSearch {
 public:
  ProvedSearch(const Tree &tree, const double *factor, int64_t k)
      : tree(tree), positions(tree.n_leaves), leading(tree, factor),
        factor(SCALED ? leading.factor.data() : nullptr),
        search_codes(leading.coded, this->factor), k(k), n_kept(k + k / 4 + 8),
        own(leading.coded.m),
        by_spread(inputs_by_spread({nullptr, nullptr, leading.boxes.data(), tree.n_leaves,
                                    leading.coded.m, tree.L}, this->factor)) {}

  // Whether the codes of few points more than are wanted tell which are nearest.
  bool pays() const { return is_few(n_kept); }

  void find(const Query &query, NearestFound &nearest) {
    Query part = query;
    for (size_t i = 0; i < own.size(); i++) own[i] = query.z[leading.inputs[i]];
    part.z = own.data();
    part.factor = factor;
    part.by_spread = by_spread.empty() ? nullptr : by_spread.data();
    for (int64_t n_tried, n = n_kept; is_few(n); n *= 2) {
      const bool is_proved = find_by_codes(part, query, n, nearest, n_tried);
      // For the next queries: about as many as suffice for most of them.
      if (is_proved && n == n_kept && n_tried + n_tried / 8 < n) n_kept -= n / 64;
      if (is_proved) return;
      if (n == n_kept) n_kept += n / 8;
    }
    nearest.start(k, tree.d, tree.L);
    search<SCALED>(tree, positions, query, nearest);
  }

 private:
  const Tree tree;
  const LeafPositions positions;
  const LeadingCodes leading;
  const double *factor;
  CodedSearch<SCALED> search_codes;
  const int64_t k;
  int64_t n_kept;
  std::vector<double> own;
  const std::vector<int32_t> by_spread;
  std::vector<Rough> candidates, scratch;

  bool is_few(int64_t n) const { return n <= 8 * k + 64; }

  // Whether they are proved to be the nearest. n_tried: points of which exact distances were needed
  bool find_by_codes(const Query &part, const Query &query, int64_t n, NearestFound &nearest,
                     int64_t &n_tried) {
    int64_t count;
    const Rough *found = search_codes.find(part, query, n, count);
    candidates.assign(found, found + count);
    scratch.resize(count);
    sort(candidates.data(), count, scratch.data());
    nearest.start(k, tree.d, tree.L);
    for (n_tried = 0; n_tried < count; n_tried += TOGETHER) {
      if (nearest.limit < least_square(distance_of(candidates[n_tried]))) break;
      Candidate some[TOGETHER];
      measure<SCALED>(tree, query, &candidates[n_tried], count - n_tried, some);
      for (int64_t e = 0; e < std::min<int64_t>(TOGETHER, count - n_tried); e++)
        if (nearest.admits(some[e])) nearest.add(some[e]);
      nearest.leaf_done();
    }
    // With fewer, a distance by codes may have overflowed.
    const float limit = std::min(search_codes.limit(), std::numeric_limits<float>::max());
    return count == n && nearest.last_square() < least_square(limit);
  }

  // What the square of a true distance surely is, in all inputs and however it is rounded, where
  // that by codes is so much.
  double least_square(float square) const {
    // Single precision rounds every sum and product, the place of a query and the width of codes,
    // and has no numbers as small as the last term.
    const double by_codes = std::sqrt(double(square)) * (1 - double(own.size() + 64) * 0x1p-23);
    const double least = by_codes - 1.01 * double(search_codes.error) - 1e-18;
    const double in_metric = least / search_codes.unit();  // whose square alone may overflow
    return least > 0 ? in_metric * in_metric : 0.0;
  }
};

// queries: (q, d), in units; factor: (d,), or null where SCALED is false
// neighbors, distances: as of `write_neighbors`
template <bool SCALED>
inline void find_nearest(const Tree &tree, const double *queries, int64_t q, const double *factor,
                         int64_t k, const Exclusions &exclusions, int32_t *neighbors,
                         double *distances) {
  const LeafPositions positions(tree.n_leaves);
  const int64_t d = tree.d, n_wanted = std::min(k, tree.n_leaves * tree.L);
  const std::vector<int32_t> by_spread = inputs_by_spread(tree, factor);
  const int32_t *order = by_spread.empty() ? nullptr : by_spread.data();
  const std::vector<int64_t> sorted = in_tree_order<SCALED>(tree, queries, q, factor, order);
  std::unique_ptr<ProvedSearch<SCALED>> by_codes;
  Query pack[PACK];
  NearestFound found[PACK];
  int64_t n_scanned = 0;  // leaves, by each of the last queries
  int64_t n_plain = 0, n_scanned_by_all = 0;  // queries without codes, and their leaves
  for (int64_t begin = 0, size; begin < q; begin += size) {
    if (!by_codes && n_plain && n_scanned_by_all >= FEWEST_SCANNED * (n_plain + N_BEFORE) &&
        (q - begin) * (n_scanned_by_all / n_plain) >= SCANS_THAT_PAY * tree.n_leaves &&
        tree.n_leaves * tree.L * int64_t(leading_inputs(tree, factor).size()) <= LARGEST_CODES)
      by_codes = std::make_unique<ProvedSearch<SCALED>>(tree, factor, n_wanted);
    const bool is_coded = by_codes && by_codes->pays();
    // A pack visits the leaves in an order that is good for none of its queries, and pays only
    // where they need the same leaves: in many dimensions, where each scans much of the data.
    size = !is_coded && 4 * n_scanned > tree.n_leaves && begin + PACK <= q ? PACK : 1;
    for (int64_t p = 0; p < size; p++) {
      pack[p] = Query(queries, sorted[begin + p], d, factor, exclusions, order);
      found[p].start(n_wanted, d, tree.L);
    }
    if (is_coded) {
      by_codes->find(pack[0], found[0]);
    } else {
      if (size == 1) {
        n_scanned = search<SCALED>(tree, positions, pack[0], found[0]);
      } else {
        PackSeeker<SCALED> seeker(tree, pack, found);
        walk(tree, positions, seeker);
        n_scanned = seeker.n_scanned / PACK;
      }
      n_plain += size, n_scanned_by_all += size * n_scanned;
    }
    for (int64_t p = 0; p < size; p++) {
      const int64_t count = found[p].finish();
      write_neighbors(found[p].data(), count, sorted[begin + p], k, neighbors, distances);
    }
  }
}

}  // namespace lsgp
