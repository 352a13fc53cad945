// SPDX-License-Identifier: BSD-3-Clause
// The walk of _core/coarse.h, by a warp for each query. Nodes that must be opened whatever room there
// is come first on the host too, in an order that changes nothing: here they are on a stack. Of the
// others the widest is looked for among all, by the lanes. Lanes measure the two halves of a node, or
// the rows of a leaf, at the same time.
#pragma once

namespace lsgp {

constexpr int ROWS = 4;  // of a leaf
constexpr int NO_ROOM = -2;  // in place of the first unit: the host is to look for them

struct Node {
  int number, first_leaf, n_leaves;
  int is_near;  // whether its mean is within the limit
};

// Nodes that may be opened, in no order, in the shared memory of a warp.
struct Open {
  double *width;     // (size,) squared, relative to the distance
  double *distance;  // (size,) squared, of the mean
  int *number, *first_leaf, *n_leaves;  // (size,) each
  int lane, size, count;

  // By one lane; the others see it after the next __syncwarp.
  void add(const Node &node, double its_width, double its_distance) {
    if (lane == 0) {
      width[count] = its_width, distance[count] = its_distance;
      number[count] = node.number, first_leaf[count] = node.first_leaf;
      n_leaves[count] = node.n_leaves;
    }
    count++;
  }
  struct Widest {
    double width;
    int number, place;
    // Of equals the smaller number.
    static Widest of(Widest a, Widest b) {
      return b.width > a.width || (b.width == a.width && b.number < a.number) ? b : a;
    }
  };
  // The place of the widest; -1 if there is none with any width.
  int widest() const {
    Widest best = {0, 0x7fffffff, -1};
    for (int e = lane; e < count; e += WARP)
      if (width[e] > 0) best = Widest::of(best, {width[e], number[e], e});
    return reduce_lanes(best, Widest::of).place;
  }
  void remove(int place) {
    __syncwarp();  // all have read it
    count--;
    if (lane == 0) {
      width[place] = width[count], distance[place] = distance[count];
      number[place] = number[count], first_leaf[place] = first_leaf[count];
      n_leaves[place] = n_leaves[count];
    }
    __syncwarp();
  }
};

struct CoarseWalk {
  const CoarseTree &coarse;
  const LeafPositions &positions;
  const Query &query;
  const double squared_limit;
  const int place;  // of the row that is left out, -1: none
  Found &found;     // rows, and in the end nodes
  Open &open;
  Node *stack;  // (LARGEST_DEPTH,) that must be opened
  int height, n_units;  // without those on the stack
  bool has_room;

  // Whether there was room for all. The found are not in order yet.
  bool run() {
    height = n_units = 0, has_room = true;
    consider(0, 0, int(coarse.tree.n_leaves), 1);
    while (has_room) {
      __syncwarp();
      Node node;
      if (height) {
        node = stack[--height];
      } else {
        const int widest = open.widest();
        if (widest < 0) break;
        node = {open.number[widest], open.first_leaf[widest], open.n_leaves[widest],
                open.distance[widest] <= squared_limit};
        const int n_inside = positions.is_leaf(node.number) ? n_rows(node) : 2;
        if (n_units + n_inside - node.is_near > found.k) break;
        open.remove(widest);
        n_units -= node.is_near;
      }
      __syncwarp();
      if (positions.is_leaf(node.number))
        add_rows(node.first_leaf);
      else
        consider(2 * node.number + 1, node.first_leaf, node.n_leaves, 2);
    }
    close();
    return has_room;
  }

 private:
  // One node, or the two halves of one, whose leaves begin here.
  void consider(int number, int first_leaf, int n_leaves, int n_nodes) {
    const int d = int(coarse.tree.d), own = number + (n_nodes == 2 ? found.lane % 2 : 0);
    const double *box = coarse.tree.box(own), *mean = coarse.means + (long long)own * d;
    double from_box = 0, from_mean = 0, unscaled = 0;
    for (int j = 0; j < d; j++) {
      const double gap = gap_to_box(box[j], box[d + j], query.z[j]);
      from_box = __dadd_rn(from_box, product(gap, gap));
      const double in_inputs = product(gap, query.all->unit[j]), away = mean[j] - query.z[j];
      unscaled = __dadd_rn(unscaled, product(in_inputs, in_inputs));
      from_mean = __dadd_rn(from_mean, product(away, away));
    }
    const double radius = coarse.squared_radii[own];
    double width = radius > 0 ? (from_box > 0 ? radius / from_mean : INFINITY) : 0;
    if (unscaled < query.squared_radius) width = INFINITY;
    const int left = n_nodes == 2 ? int(n_leaves_left(n_leaves)) : n_leaves;
    for (int c = 0; c < n_nodes; c++) {
      const double its_box = from_lane(from_box, c), its_mean = from_lane(from_mean, c),
                   its_width = from_lane(width, c);
      if (its_box > squared_limit) continue;
      const Node node = {number + c, c ? first_leaf + left : first_leaf, c ? n_leaves - left : left,
                         its_mean <= squared_limit};
      if (its_width == INFINITY || holds_excluded(node)) {
        if (found.lane == 0) stack[height] = node;
        height++;
        continue;
      }
      n_units += node.is_near;
      if (open.count == open.size) {
        // With more units than there may be, none will be opened: the nearest of them are it.
        if (n_units > found.k) close();
        else has_room = false;
      }
      if (has_room) open.add(node, its_width, its_mean);
    }
  }

  // Open nodes that are near are found as they are.
  void close() {
    __syncwarp();
    for (int begin = 0; begin < open.count; begin += WARP) {
      const int e = begin + found.lane;
      const bool is_near = e < open.count && open.distance[e] <= squared_limit;
      add(is_near, is_near ? open.distance[e] : 0, is_near ? int(coarse.n) + open.number[e] : 0);
    }
    open.count = 0;
  }

  void add(bool passes, double distance, int unit) {
    found.add(passes, distance, unit);
    __syncwarp();
    if (found.count > found.size - WARP) found.keep_nearest(int(coarse.tree.d));
  }

  int n_rows(const Node &node) const { return int(coarse.n_rows(node.first_leaf, node.n_leaves)); }

  bool holds_excluded(const Node &node) const {
    const long long begin = (long long)node.first_leaf * ROWS;
    const int count = n_rows(node);
    if (place >= begin && place < begin + count) return true;
    if (query.excluded_group < 0) return false;
    if (count > MOST_LOOKED_THROUGH) return true;
    for (int i = 0; i < count; i += WARP) {
      const int row = i + found.lane < count ? coarse.tree.order[begin + i + found.lane] : -1;
      if (ballot(query.is_in_excluded_group(row))) return true;
    }
    return false;
  }

  void add_rows(int leaf) {
    const int d = int(coarse.tree.d), p = found.lane % ROWS;
    const double *point = coarse.tree.leaves + (long long)leaf * d * ROWS + p;
    const int row = coarse.tree.order[(long long)leaf * ROWS + p];
    const double own = squared_distance(query, point, d, ROWS);
    const bool passes =
        found.lane < ROWS && query.admits(row, point, d, ROWS) && own <= squared_limit;
    n_units += n_set(ballot(passes));
    add(passes, own, row);
  }
};

}  // namespace lsgp

// One warp per query, in this order. Units (q, m) within the squared limits (q,), nearest first, -1
// where there are fewer. Where the limit is 0, the nearest rows (q, n_nearest) are the units.
extern "C" __global__ void find_units(
    const double *leaves, const int *order, const double *boxes, const double *means,
    const double *squared_radii, const int *places, long long n_leaves, long long n, int d,
    const double *queries, const double *squared_limits, const int *nearest, int n_nearest,
    const int *rows, const double *radii, const double *unit, const int *groups,
    const int *query_groups, long long n_groups, long long n_queries, const long long *turns, int m,
    int n_found, int n_open, int *units) {
  LSGP_SHARED_MEMORY;
  const int lane = lsgp::rank() % lsgp::WARP, warp = lsgp::rank() / lsgp::WARP,
            n_warps = lsgp::n_threads() / lsgp::WARP;
  // Of each warp: its stack, its distances and numbers, its open nodes.
  lsgp::Node *stacks = reinterpret_cast<lsgp::Node *>(lsgp_memory);
  double *distances = reinterpret_cast<double *>(stacks + n_warps * lsgp::LARGEST_DEPTH);
  double *widths = distances + n_warps * n_found, *away = widths + n_warps * n_open;
  int *numbers = reinterpret_cast<int *>(away + n_warps * n_open);
  int *of_open = numbers + n_warps * n_found + 3 * warp * n_open;
  const lsgp::CoarseTree coarse = {
      {leaves, order, boxes, n_leaves, d, lsgp::ROWS}, means, squared_radii, places, n};
  const lsgp::LeafPositions positions(n_leaves);
  const lsgp::Exclusions exclusions = {rows, radii, unit, groups, query_groups, n_groups};
  for (long long turn = (long long)blockIdx.x * n_warps + warp; turn < n_queries;
       turn += (long long)gridDim.x * n_warps) {
    const long long q = turns ? turns[turn] : turn;
    const double limit = squared_limits[q];
    if (limit == 0) {  // as many rows on top of the query leave nothing to reach for
      for (int r = lane; r < m; r += lsgp::WARP)
        units[q * m + r] = r < n_nearest ? nearest[q * n_nearest + r] : -1;
      continue;
    }
    const lsgp::Query query(queries, q, d, nullptr, exclusions);
    const int excluded = query.excluded_row;
    lsgp::Found found = {distances + warp * n_found, numbers + warp * n_found, lane, n_found, m,
                         0, INFINITY, INFINITY, 0x7fffffff};
    lsgp::Open open = {widths + warp * n_open, away + warp * n_open, of_open, of_open + n_open,
                       of_open + 2 * n_open, lane, n_open, 0};
    lsgp::CoarseWalk walk = {coarse, positions, query, limit,
                             excluded >= 0 && excluded < n ? places[excluded] : -1,
                             found, open, stacks + warp * lsgp::LARGEST_DEPTH, 0, 0, true};
    const bool has_room = walk.run();
    if (has_room) found.sort();
    for (int r = lane; r < m; r += lsgp::WARP)
      units[q * m + r] = !has_room ? lsgp::NO_ROOM : r < found.count ? found.row[r] : -1;
    __syncwarp();
  }
}
