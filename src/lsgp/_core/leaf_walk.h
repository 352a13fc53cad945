// SPDX-License-Identifier: BSD-3-Clause
// The walk through the leaves of a search by codes, exact or approximate: nearest first.
//
// A few groups of leaves tell how far to go, then all others are collected that are near enough,
// and scanned in the order of their distance. A leaf is near enough if its squared distance is at
// most `reach` times that of the farthest point kept so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "candidates.h"
#include "codes.h"
#include "search.h"

namespace lsgp {

// The nearest by their codes so far.
class RoughFound : public Least<Rough> {
 public:
  // Squared distances by codes above which points are dropped, and boxes.
  float limit = 0, bound = 0;

  explicit RoughFound(double reach) : reach(reach) {}
  // room: the most that are added before it is told so
  void start(int64_t n_kept, int64_t room) {
    Least::start(n_kept, 32, room);
    limit = bound = float(INFINITE);
  }
  void some_added() {
    if (is_time(limit < float(INFINITE))) keep_nearest();
  }
  // In no order.
  const Rough *finish(int64_t &n_found) {
    if (count > k) keep_nearest();
    n_found = count;
    return found.data();
  }

 private:
  const double reach;

  void keep_nearest() {
    limit = distance_of(keep_least());
    bound = float(reach * limit);
  }
};

// Where the walk comes by, a search does its part:
//   push_below(node, query)   what is below a node that is no group joins those to look at
//   enter(metric, squares)    a group is opened; squares: of the diagonal of a code there
//   scan(leaf, query)         points of a leaf are kept, where they are near enough
//   end_scan(query)           no leaf follows for now
// Its N_AHEAD is the number of leaves whose codes are on their way from memory.
template <bool SCALED> class LeafWalk {
 public:
  const Groups groups;
  const double unit;  // what distances are multiplied by here
  RoughFound kept;

  // factor: (m,), or null where SCALED is false
  LeafWalk(const CodedTree &tree, double reach, const double *factor)
      : groups(tree.tree.n_leaves), unit(unit_of_codes(tree.boxes, tree.m, SCALED ? factor : nullptr)),
        kept(reach), tree(tree) {}

  // What is kept is to be started before. Not inlined: within a whole search, registers were too
  // few, and the sums of `enter_box` waited for memory.
  template <class Search>
  __attribute__((noinline)) void run(const Query &query, Search &search) {
    heap.clear(), to_open.clear(), leaves.clear(), n_opened = 0;
    open_first_groups(query, search);
    collect_leaves(query, search);
    scan_leaves(query, search);
  }

  // Of the groups that were opened: (n_opened, 2, m) width of a code, and the query's place.
  const float *metrics() const { return metric.data(); }

  void push(double distance, int64_t node) { heap.push_back({distance, node}); }
  void push_children(int64_t node, const Query &query) {
    for (int64_t child = 2 * node + 1; child <= 2 * node + 2; child++)
      push(box_distance<SCALED>(tree.box(child), query, tree.m) * unit * unit, child);
  }

 private:
  // Groups that are scanned before others are looked at: what they hold tells which.
  static constexpr int N_FIRST = 8;

  const CodedTree tree;
  std::vector<FarNode> heap;
  std::vector<int64_t> to_open;
  NearLeaves leaves;
  std::vector<float> metric;  // and room for more
  uint32_t n_opened = 0;

  const uint8_t *leaf_boxes_of(int64_t node) const {
    return tree.leaf_boxes + (node - groups.first) * 2 * tree.m * GROUP;
  }

  // Best first, until what is found says how far to go.
  template <class Search> void open_first_groups(const Query &query, Search &search) {
    push(0.0, 0);
    for (int n_scanned = 0;
         !heap.empty() && (n_scanned < N_FIRST || kept.limit == float(INFINITE));) {
      const int64_t node = heap.front().node;
      if (!(heap.front().distance <= kept.bound)) break;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
      if (groups.is_group(node)) {
        open(node, query, search);
        scan_leaves(query, search);
        leaves.clear();
        n_scanned++;
        continue;
      }
      const size_t n_before = heap.size();
      search.push_below(node, query);
      for (size_t n = n_before + 1; n <= heap.size(); n++)
        std::push_heap(heap.begin(), heap.begin() + n);
    }
  }

  // All other leaves that are near enough.
  template <class Search> void collect_leaves(const Query &query, Search &search) {
    while (!heap.empty()) {
      const FarNode top = heap.back();
      heap.pop_back();
      if (!(top.distance <= kept.bound)) continue;
      if (groups.is_group(top.node))
        to_open.push_back(top.node);
      else
        search.push_below(top.node, query);
    }
    for (size_t i = 0; i < to_open.size(); i++) {
      if (i + 2 < to_open.size()) {
        const int64_t next = to_open[i + 2];
        prefetch_bytes(leaf_boxes_of(next), 2 * tree.m * GROUP);
        prefetch_bytes(tree.box(next), 2 * tree.m * int64_t(sizeof(double)));
      }
      open(to_open[i], query, search);
    }
  }

  // Which leaves of a group are near enough.
  template <class Search> void open(int64_t node, const Query &query, Search &search) {
    const int64_t m = tree.m;
    if (int64_t(metric.size()) < (n_opened + 1) * 2 * m) metric.resize(2 * (n_opened + 1) * 2 * m);
    float *own = metric.data() + n_opened * 2 * m;
    const float squares = enter_box<SCALED>(tree.box(node), query, m, unit, own);
    search.enter(own, squares);
    float distances[GROUP];
    coded_box_distances(leaf_boxes_of(node), query, m, own, distances);
    int64_t n_leaves;
    const int64_t first = groups.first_leaf(node, n_leaves);
    leaves.add(distances, n_leaves, n_opened++, first, kept.bound);
  }

  // Static: the walk is a part of the search, and a second pointer to it would cost a register that
  // scans need (1 % of the time of an approximate search with AVX-512).
  template <class Search> static void scan_leaves(const Query &query, Search &search) {
    NearLeaves &leaves = search.walk.leaves;
    const RoughFound &kept = search.walk.kept;
    const CodedTree &tree = search.walk.tree;
    leaves.sort();
    const int64_t size = tree.leaf_size;
    for (int64_t i = 0; i < leaves.size(); i++) {
      const int64_t ahead = i + Search::N_AHEAD;
      if (ahead < leaves.size() && leaves[ahead].distance <= kept.bound)
        prefetch_bytes(tree.codes + leaves[ahead].leaf * size, size);
      if (leaves[i].distance <= kept.bound) search.scan(leaves[i], query);
    }
    search.end_scan(query);
  }
};

}  // namespace lsgp
