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
//
// Microseconds per query, 64 neighbors, normal inputs, without codes and by them:
//     100,000 rows of 128 inputs, of which 10 matter (others: lengthscale 30)   780   210
//     100,000 rows of 16 inputs                                                 440   220
//     a million rows of 8 inputs                                                250   110
//     a million rows of 16 inputs                                              3400  2300
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "candidates.h"
#include "coded_search.h"
#include "query.h"
#include "search.h"

namespace lsgp {

// Inputs without codes have at most this share of the squared diagonal of all points. They are
// then a tenth or so of the squared distance of neighbors, which are much nearer than most points.
constexpr double LARGEST_REST = 0.02;
// Leaves that a plain search scans for a query. Of fewer, codes save nothing.
constexpr int64_t FEWEST_SCANNED = 48;
// To make the codes of a leaf takes as long as they save in scanning it so many times.
constexpr int64_t SCANS_THAT_PAY = 16;
// Their mean tells how many others will scan, as if so many queries had scanned none before: a few
// that are far from all points are no reason. (By the last query alone, 100,000 rows of 4 inputs
// took 16 microseconds instead of 11.)
constexpr int64_t N_BEFORE = 15;
// Bytes of codes. Each call makes its own, in each of its threads, beside all that memory is
// planned for.
constexpr int64_t LARGEST_CODES = int64_t(1) << 26;

// The inputs that have codes, the widest first; empty: all, as they are, since fewer than half of
// them would be left out.
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
  return {};
}

// Bytes of the codes of a tree.
inline int64_t size_of_codes(const Tree &tree, const double *factor) {
  const int64_t m = int64_t(leading_inputs(tree, factor).size());
  return tree.n_leaves * tree.L * (m ? m : tree.d);
}

// The codes of a tree in the inputs that matter to a metric.
class LeadingCodes {
 public:
  LeadingCodes(const Tree &tree, const double *factor) : inputs(leading_inputs(tree, factor)) {
    const int64_t m = inputs.empty() ? tree.d : int64_t(inputs.size());
    const int32_t *some = inputs.empty() ? nullptr : inputs.data();
    codes.resize(tree.n_leaves * m * tree.L);
    bounds.resize(Groups(tree.n_leaves).n_groups * 2 * m * GROUP);
    if (some) {
      boxes = gathered(tree.boxes, 2 * tree.n_nodes(), tree.d);
      if (factor) own_factor = gathered(factor, 1, tree.d);
    }
    coded = {tree, codes.data(), bounds.data(), some ? boxes.data() : tree.boxes, m};
    encode_tree(tree, coded.boxes, some, m, codes.data(), bounds.data());
  }
  LeadingCodes(const LeadingCodes &) = delete;

  CodedTree coded;

  const double *factor_of(const double *factor) const {
    return own_factor.empty() ? factor : own_factor.data();
  }
  // point: (d,); returns it, or what is written to own, (m,)
  const double *in_own(const double *point, std::vector<double> &own) const {
    if (inputs.empty()) return point;
    for (size_t i = 0; i < inputs.size(); i++) own[i] = point[inputs[i]];
    return own.data();
  }

 private:
  const std::vector<int32_t> inputs;
  std::vector<uint8_t> codes, bounds;
  std::vector<double> boxes, own_factor;

  std::vector<double> gathered(const double *rows, int64_t n, int64_t d) const {
    std::vector<double> own;
    own.reserve(n * inputs.size());
    for (int64_t r = 0; r < n; r++)
      for (const int32_t j : inputs) own.push_back(rows[r * d + j]);
    return own;
  }
};

template <bool SCALED> class ProvedSearch {
 public:
  ProvedSearch(const Tree &tree, const double *factor, int64_t k)
      : tree(tree), positions(tree.n_leaves), leading(tree, factor),
        factor(leading.factor_of(factor)), search_codes(leading.coded, this->factor), k(k),
        n_kept(k + k / 4 + 8), own(leading.coded.m) {
    const CodedTree &part = leading.coded;
    const Tree boxes{nullptr, nullptr, part.boxes, tree.n_leaves, part.m, tree.L};
    by_spread = inputs_by_spread(boxes, this->factor);
  }

  // Whether the codes of few points more than are wanted tell which are nearest.
  bool pays() const { return is_few(n_kept); }

  void find(const Query &query, NearestFound &nearest) {
    Query part = query;
    part.z = leading.in_own(query.z, own);
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
  std::vector<int32_t> by_spread;
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
      try_some(query, n_tried, count, nearest);
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

  void try_some(const Query &query, int64_t begin, int64_t count, NearestFound &nearest) {
    int64_t places[TOGETHER];
    double squares[TOGETHER];
    for (int e = 0; e < TOGETHER; e++)
      places[e] = uint32_t(candidates[std::min(begin + e, count - 1)]);
    exact_distances<SCALED>(tree, query, places, squares);
    for (int e = 0; e < TOGETHER && begin + e < count; e++) {
      const Candidate candidate = candidate_of(squares[e], tree.order[places[e]]);
      if (nearest.admits(candidate)) nearest.add(candidate);
    }
    nearest.leaf_done();
  }
};

// queries: (q, d), in units; factor: (d,), or null where SCALED is false
// neighbors: (q, k), written, -1 where there are fewer; distances: (q, k), squared, or null
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
        size_of_codes(tree, factor) <= LARGEST_CODES)
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
      n_scanned = size == 1 ? search<SCALED>(tree, positions, pack[0], found[0])
                            : search_pack<SCALED>(tree, positions, pack, found);
      n_plain += size, n_scanned_by_all += size * n_scanned;
    }
    for (int64_t p = 0; p < size; p++) {
      const int64_t i = sorted[begin + p], count = found[p].finish();
      for (int64_t r = 0; r < k; r++) {
        neighbors[i * k + r] = r < count ? row_of(found[p][r]) : -1;
        if (distances) distances[i * k + r] = r < count ? distance_of(found[p][r]) : INFINITE;
      }
    }
  }
}

}  // namespace lsgp
