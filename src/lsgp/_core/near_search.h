// SPDX-License-Identifier: BSD-3-Clause
// The nearest points by their codes, nearly all of them: what an approximate search asks first.
//
// As in `coded_search.h` nearest leaves come first, but a leaf is near enough only if its squared
// distance is at most `reach` times that of the farthest point kept so far, and points are
// compared three times: by half codes, which are scanned; by codes, where these sums leave a
// chance; and the last few by exact distances, elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "candidates.h"
#include "coded_boxes.h"
#include "half_codes.h"
#include "query.h"
#include "search.h"

namespace lsgp {

template <bool SCALED> class NearSearch {
 public:
  // factor: (d,), or null where SCALED is false
  NearSearch(const HalfCodedTree &coded, double reach, const double *factor)
      : coded(coded), tree(coded.tree), groups(tree.n_leaves), regions(groups), reach(reach),
        unit(unit_of_codes(tree.box(0), tree.d, SCALED ? factor : nullptr)),
        rounding(std::min(N_ERRORS * std::sqrt(float(tree.d) / 12), LEAST_SUM)), in_region(2 * tree.d) {}

  // Places in the tree of the n_kept nearest by their codes, in no order.
  const Rough *find(const Query &query, int64_t n_kept_, int64_t &n_found) {
    start(n_kept_);
    open_first_groups(query);
    collect_leaves(query);
    scan_leaves(query);
    if (count > n_kept) keep_nearest();
    n_found = count;
    return found.data();
  }

 private:
  // Groups that are scanned before others are looked at: what they hold tells which.
  static constexpr int N_FIRST = 8;
  // A point has a chance if its sum is too large by no more than so many standard errors of it.
  // With 3 instead of 2, of a million normal points of 16 inputs a third more have one, and none
  // of them is a neighbor.
  static constexpr float N_ERRORS = 2;
  // What a sum may be at most, of the 255 that a byte holds, when a table is made, and the least
  // that it may come to as the limit sinks: then the table is too coarse, and made again.
  static constexpr float LARGEST_SUM = 250, LEAST_SUM = 100;
  // Points that wait for their codes to come from memory.
  static constexpr int64_t MANY_WAITING = 16;
  // Leaves whose half codes are on their way.
  static constexpr int64_t N_AHEAD = 4;

  // A group: how sums of its half codes differ from squared distances.
  struct Opened {
    float bias;    // on average
    float near, far;  // variance, of points at distance 0, and what is added at distance 1
    float scale;   // of the sums
    int64_t size;  // inputs whose table is there
  };
  struct Waiting {
    uint32_t place, opened;
  };

  const HalfCodedTree coded;
  const Tree tree;
  const Groups groups;
  const Regions regions;
  const double reach, unit;
  const float rounding;  // of the numbers of tables, in a sum: N_ERRORS standard errors
  // Squared distances by codes above which points are dropped, and boxes.
  float limit = 0, bound = 0;
  int64_t n_kept = 0, patience = 0, count = 0;
  uint32_t n_opened = 0;
  int64_t n_waiting = 0;
  Waiting waiting[MANY_WAITING + BLOCK];
  Rough near[MANY_WAITING + BLOCK];
  std::vector<Rough> found, scratch;
  std::vector<FarNode> heap;
  std::vector<int64_t> to_open;
  NearLeaves leaves;
  std::vector<Opened> opened;
  std::vector<float> metric;    // (n_opened, 2, d) width of a code, and the query's place
  std::vector<uint8_t> tables;  // (n_opened, d, N_HALVES)
  std::vector<float> in_region;  // (2, d) metric

  void start(int64_t n_kept_) {
    n_kept = n_kept_, patience = n_kept + std::max<int64_t>(n_kept / 2, 32);
    found.resize(patience + MANY_WAITING + BLOCK);
    scratch.resize(found.size());
    limit = bound = float(INFINITE), count = 0, n_opened = 0;
    heap.clear(), to_open.clear(), leaves.clear(), opened.clear();
  }

  void keep_nearest() {
    limit = distance_of(select(found.data(), count, n_kept, scratch.data()));
    bound = float(reach * limit);
    count = n_kept;
  }

  // Best first, until what is found says how far to go.
  void open_first_groups(const Query &query) {
    heap.push_back({0.0, 0});
    for (int n_scanned = 0; !heap.empty() && (n_scanned < N_FIRST || limit == float(INFINITE));) {
      const int64_t node = heap.front().node;
      if (!(heap.front().distance <= bound)) break;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      if (groups.is_group(node)) {
        open(node, query);
        scan_leaves(query);
        leaves.clear();
        n_scanned++;
        continue;
      }
      const size_t n_before = heap.size();
      push_below(node, query);
      for (size_t n = n_before + 1; n <= heap.size(); n++)
        std::push_heap(heap.begin(), heap.begin() + n);
    }
  }

  // All other leaves that are near enough.
  void collect_leaves(const Query &query) {
    while (!heap.empty()) {
      const FarNode top = heap.back();
      heap.pop_back();
      if (!(top.distance <= bound)) continue;
      if (groups.is_group(top.node))
        to_open.push_back(top.node);
      else
        push_below(top.node, query);
    }
    const int64_t size = 2 * tree.d * GROUP;
    for (size_t i = 0; i < to_open.size(); i++) {
      if (i + 2 < to_open.size()) {
        const int64_t next = to_open[i + 2];
        prefetch_bytes(coded.leaf_boxes + (next - groups.first) * size, size);
        prefetch_bytes(tree.box(next), 2 * tree.d * int64_t(sizeof(double)));
      }
      open(to_open[i], query);
    }
  }

  // The children of a node, or the groups of a region.
  void push_below(int64_t node, const Query &query) {
    const int64_t d = tree.d;
    if (node < regions.first) {
      for (int64_t child = 2 * node + 1; child <= 2 * node + 2; child++)
        heap.push_back({box_distance<SCALED>(tree.box(child), query, d) * unit * unit, child});
      return;
    }
    float distances[GROUP];
    enter_box<SCALED>(tree.box(node), query, d, unit, in_region.data());
    coded_box_distances(coded.group_boxes + (node - regions.first) * 2 * d * GROUP, query, d,
                        in_region.data(), distances);
    const int64_t first = regions.first_group(node);
    for (int64_t i = 0; i < regions.n_groups(); i++)
      if (distances[i] <= bound) heap.push_back({distances[i], first + i});
  }

  // Which leaves of a group are near enough.
  void open(int64_t node, const Query &query) {
    const int64_t d = tree.d;
    if (int64_t(metric.size()) < (n_opened + 1) * 2 * d) {
      metric.resize(2 * (n_opened + 1) * 2 * d);
      tables.resize(2 * (n_opened + 1) * d * N_HALVES);
    }
    float *own = metric.data() + n_opened * 2 * d;
    const float squares = enter_box<SCALED>(tree.box(node), query, d, unit, own);
    float fourths = 0;
    for (int64_t j = 0; j < d; j++) fourths += own[j] * own[j] * own[j] * own[j];
    // The error e of a place along an input is anywhere in a half of width w: the mean of e^2 is a
    // twelfth of w^2, its variance w^4 / 180; that of 2 e times a difference depends on differences,
    // which are taken to be as large, in proportion, as widths are.
    constexpr float share = CODES_PER_HALF * CODES_PER_HALF;
    const float twelfth = share / 12;
    opened.push_back({twelfth * squares, share * share / 180 * fourths,
                      squares > 0 ? 4 * twelfth * fourths / squares : 0.0f, 0, 0});
    float distances[GROUP];
    coded_box_distances(coded.leaf_boxes + (node - groups.first) * 2 * d * GROUP, query, d, own,
                        distances);
    int64_t n_leaves;
    const int64_t first = groups.first_leaf(node, n_leaves);
    leaves.add(distances, n_leaves, n_opened++, first, bound);
  }

  void scan_leaves(const Query &query) {
    leaves.sort();
    const int64_t size = tree.d * tree.L / 2;
    for (int64_t i = 0; i < leaves.size(); i++) {
      const int64_t ahead = i + N_AHEAD;
      if (ahead < leaves.size() && leaves[ahead].distance <= bound)
        prefetch_bytes(coded.halves + leaves[ahead].leaf * size, size);
      if (leaves[i].distance <= bound) scan(leaves[i], query);
    }
    compare_codes(query);
  }

  void scan(const NearLeaf &leaf, const Query &query) {
    for (int64_t begin = 0; begin < tree.L; begin += BLOCK) {
      const int64_t first = leaf.leaf * tree.L + begin;
      uint64_t passed =
          limit < float(INFINITE) ? with_a_chance(first, leaf.opened, query) : ~uint64_t(0);
      for (; passed; passed &= passed - 1) {
        const int64_t place = first + __builtin_ctzll(passed);
        __builtin_prefetch(coded.points + place * tree.d);
        __builtin_prefetch(tree.order + place);
        waiting[n_waiting++] = {uint32_t(place), leaf.opened};
      }
      if (n_waiting >= MANY_WAITING || limit == float(INFINITE)) compare_codes(query);
    }
  }

  // Which points of a block may be near enough, by their half codes: bit l is that of first + l.
  uint64_t with_a_chance(int64_t first, uint32_t number, const Query &query) {
    const int64_t d = tree.d;
    Opened &group = opened[number];
    const float error = std::sqrt(group.near + limit * group.far);
    const float farthest = limit + group.bias + N_ERRORS * error;
    if (!(farthest * group.scale > LEAST_SUM)) {
      group.scale = (LARGEST_SUM - rounding) / std::max(farthest, 1e-30f);
      group.size = 0;
    }
    const float most = std::min(farthest * group.scale + rounding, LARGEST_SUM);
    const uint8_t *halves = coded.halves + first * d / 2;
    const uint8_t *table = tables.data() + number * d * N_HALVES;
    HalfSums sums;
    // Of many inputs the widest first, until no point is left: see `add_by_spread`.
    const int64_t size = query.by_spread ? N_AT_A_TIME : d;
    for (int64_t i = 0;;) {
      const int64_t stop = std::min(i + size, d);
      if (group.size < stop) extend_table(number, stop, query);
      if (query.by_spread)
        for (; i < stop; i++)
          sums.add(halves + query.by_spread[i] * (BLOCK / 2), table + i * N_HALVES);
      else
        for (; i < stop; i++) sums.add(halves + i * (BLOCK / 2), table + i * N_HALVES);
      const uint64_t passed = sums.at_most(uint8_t(most));
      if (i == d || !passed) return passed;
    }
  }

  // The table of a group for as many inputs, in the order in which they are looked at.
  void extend_table(uint32_t number, int64_t stop, const Query &query) {
    const int64_t d = tree.d;
    Opened &group = opened[number];
    const float *width = metric.data() + number * 2 * d, *at = width + d;
    uint8_t *table = tables.data() + number * d * N_HALVES;
    const float scale = std::sqrt(group.scale);
    for (int64_t i = group.size; i < stop; i++) {
      const int64_t j = query.by_spread ? query.by_spread[i] : i;
      // Multiples of the golden ratio are spread evenly, however many there are.
      const float turn = float(i) * 0.618034f;
      tabulate(CODES_PER_HALF * width[j] * scale, at[j] * scale, turn - std::floor(turn),
               table + i * N_HALVES);
    }
    group.size = stop;
  }

  // Of the points that have a chance, those that are near enough by their codes.
  void compare_codes(const Query &query) {
    const int64_t d = tree.d, L = tree.L;
    int64_t n_near = 0;
    for (int64_t i = 0; i < n_waiting; i++) {  // without a branch that nobody could predict
      const uint32_t place = waiting[i].place;
      const float *own = metric.data() + waiting[i].opened * 2 * d;
      const float distance = coded_distance(coded.points + place * d, own, d);
      near[n_near] = rough_of(distance, place);
      n_near += distance < limit;
    }
    n_waiting = 0;
    for (int64_t i = 0; i < n_near; i++) {
      const int64_t place = uint32_t(near[i]);
      const int32_t row = tree.order[place];
      if (row >= 0 && query.admits(row, tree.leaves + place / L * d * L + place % L, d, L))
        found[count++] = near[i];
    }
    if (count >= patience || (count >= n_kept && limit == float(INFINITE))) keep_nearest();
  }
};

}  // namespace lsgp
