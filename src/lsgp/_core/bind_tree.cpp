// SPDX-License-Identifier: BSD-3-Clause
// Python bindings of the neighbor search.
#include <limits>
#include <vector>

#include "approximate.h"
#include "arrays.h"
#include "build_tree.h"
#include "coarse.h"
#include "nearest.h"

namespace nb = nanobind;
using namespace lsgp;

namespace {

constexpr int64_t MOST_ROWS = std::numeric_limits<int32_t>::max();

// leaves: (n_leaves, d, L); order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
typedef std::tuple<In<double, 3>, In<int32_t, 2>, In<double, 3>> TreeArrays;
// exclude, radius: (q,); unit: (d,); groups: (n,); query_groups: (q,)
typedef std::tuple<MaybeIn<int32_t, 1>, MaybeIn<double, 1>, MaybeIn<double, 1>,
                   MaybeIn<int32_t, 1>, MaybeIn<int32_t, 1>> ExclusionArrays;

// Of leaves of any size: the search needs whole vectors of them, see `searched_tree_of`.
Tree tree_of(const TreeArrays &arrays) {
  const auto &[leaves, order, boxes] = arrays;
  const int64_t n_leaves = leaves.shape(0), d = leaves.shape(1), L = leaves.shape(2);
  require(n_leaves > 0 && d > 0 && L > 0, "the tree is empty");
  require_shape(order, "order", "(n_leaves, L)", n_leaves, L);
  require_shape(boxes, "boxes", "(2 * n_leaves - 1, 2, d)", 2 * n_leaves - 1, 2, d);
  return {leaves.data(), order.data(), boxes.data(), n_leaves, d, L};
}

Tree searched_tree_of(const TreeArrays &arrays) {
  const Tree tree = tree_of(arrays);
  require(tree.L % LEAF_MULTIPLE == 0, "the points of a leaf do not fill whole vectors");
  return tree;
}

// queries: (q, d), in units; factor: (d,) unit / lengthscale, none if all are 1
Exclusions exclusions_of(const Tree &tree, const In<double, 2> &queries,
                         const MaybeIn<double, 1> &factor, const ExclusionArrays &arrays) {
  const auto &[exclude, radius, unit, groups, query_groups] = arrays;
  const size_t q = queries.shape(0);
  require_shape(queries, "queries", "(q, d)", q, tree.d);
  if (factor) require_shape(*factor, "factor", "(d,)", tree.d);
  if (exclude) require_shape(*exclude, "exclude", "(q,)", q);
  if (radius) require_shape(*radius, "exclusion_radius", "(q,)", q);
  require(!radius || unit, "exclusion_radius needs unit");
  if (unit) require_shape(*unit, "unit", "(d,)", tree.d);
  require(bool(groups) == bool(query_groups), "groups and query_groups come together");
  if (query_groups) require_shape(*query_groups, "query_groups", "(q,)", q);
  // Rows may have left the tree: how many there are, it does not know.
  require(!groups || int64_t(groups->shape(0)) <= tree.n_leaves * tree.L,
          "groups must have shape (n,)");
  return {pointer_of(exclude), pointer_of(radius),       pointer_of(unit),
          pointer_of(groups),  pointer_of(query_groups), groups ? int64_t(groups->shape(0)) : 0};
}

void require_neighbors(size_t q, const Out<int32_t, 2> &neighbors,
                       const MaybeOut<double, 2> &squares) {
  const size_t k = neighbors.shape(1);
  require(has_shape(neighbors, q, k) && k > 0, "neighbors must have shape (q, k), k > 0");
  if (squares) require_shape(*squares, "distances", "(q, k)", q, k);
}

// points: (n_leaves * L, d), the first n rows given; becomes (n_leaves, d, L) in place
// order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
void build_tree(Out<double, 2> points, int64_t n, Out<int32_t, 2> order, Out<double, 3> boxes,
                int64_t n_threads) {
  const int64_t n_leaves = order.shape(0), L = order.shape(1), d = points.shape(1);
  require(n_leaves > 0 && d > 0 && L > 0, "the tree is empty");
  require_shape(points, "points", "(n_leaves * L, d)", n_leaves * L, d);
  require(n <= n_leaves * L && n > (n_leaves - 1) * L, "n points do not fill n_leaves leaves");
  require(n_leaves * L <= MOST_ROWS, "too many points for 32-bit rows");
  require_shape(boxes, "boxes", "(2 * n_leaves - 1, 2, d)", 2 * n_leaves - 1, 2, d);
  nb::gil_scoped_release release;
  TreeBuilder(points.data(), order.data(), boxes.data(), n, n_leaves, d, L).build(n_threads);
}

// The arrays of codes, read or written: halves: (n_leaves, d, L / 2), points: (n_leaves, L, d),
// leaf_boxes: (n_groups, 2, d, GROUP), group_boxes: (n_regions, 2, d, GROUP)
template <template <class, int> class Codes>
void require_codes(const Tree &tree, const Codes<uint8_t, 3> &halves,
                   const Codes<uint8_t, 3> &points, const Codes<uint8_t, 4> &leaf_boxes,
                   const Codes<uint8_t, 4> &group_boxes) {
  const int64_t n = tree.n_leaves, d = tree.d, L = tree.L;
  const Groups groups(n);
  require(L == BLOCK, "the points of a leaf do not fill a block");
  require(n * L <= MOST_ROWS, "too many points for 32-bit places");
  require_shape(halves, "halves", "(n_leaves, d, L / 2)", n, d, L / 2);
  require_shape(points, "points", "(n_leaves, L, d)", n, L, d);
  require_shape(leaf_boxes, "leaf_boxes", "(n_groups, 2, d, GROUP)", groups.n_groups, 2, d, GROUP);
  require_shape(group_boxes, "group_boxes", "(n_regions, 2, d, GROUP)", Regions(groups).n_regions,
                2, d, GROUP);
}

// The codes of a tree, all written, for `find_near`.
void encode_tree_py(TreeArrays arrays, Out<uint8_t, 3> halves, Out<uint8_t, 3> points,
                    Out<uint8_t, 4> leaf_boxes, Out<uint8_t, 4> group_boxes) {
  const Tree tree = tree_of(arrays);
  require_codes<Out>(tree, halves, points, leaf_boxes, group_boxes);
  nb::gil_scoped_release release;
  encode_halves(tree, halves.data(), points.data(), leaf_boxes.data(), group_boxes.data());
}

// Codes as of encode_tree, other arguments as of find_nearest.
// reach: a leaf is opened up to this share of the farthest neighbor's squared distance
void find_near_py(TreeArrays arrays, In<uint8_t, 3> halves, In<uint8_t, 3> points,
                  In<uint8_t, 4> leaf_boxes, In<uint8_t, 4> group_boxes, double reach,
                  In<double, 2> queries, MaybeIn<double, 1> factor, ExclusionArrays excluded,
                  Out<int32_t, 2> neighbors, MaybeOut<double, 2> squares) {
  const Tree tree = tree_of(arrays);
  const size_t q = queries.shape(0);
  require_codes<In>(tree, halves, points, leaf_boxes, group_boxes);
  require(reach > 0 && reach <= 1, "reach must be in (0, 1]");
  require_neighbors(q, neighbors, squares);
  const Exclusions exclusions = exclusions_of(tree, queries, factor, excluded);
  const HalfCodedTree coded{{tree, halves.data(), leaf_boxes.data(), tree.boxes, tree.d,
                             tree.d * tree.L / 2}, points.data(), group_boxes.data()};
  nb::gil_scoped_release release;
  const auto find = factor ? &find_near<true> : &find_near<false>;
  find(coded, reach, queries.data(), q, pointer_of(factor), neighbors.shape(1), exclusions,
       neighbors.data(), pointer_of(squares));
}

// neighbors: (q, k), written; squares: (q, k) of the distances, written if given
void find_nearest_py(TreeArrays arrays, In<double, 2> queries, MaybeIn<double, 1> factor,
                     ExclusionArrays excluded, Out<int32_t, 2> neighbors,
                     MaybeOut<double, 2> squares) {
  const Tree tree = searched_tree_of(arrays);
  const size_t q = queries.shape(0);
  require_neighbors(q, neighbors, squares);
  const Exclusions exclusions = exclusions_of(tree, queries, factor, excluded);
  nb::gil_scoped_release release;
  const auto find = factor ? &find_nearest<true> : &find_nearest<false>;
  find(tree, queries.data(), q, pointer_of(factor), neighbors.shape(1), exclusions,
       neighbors.data(), pointer_of(squares));
}

// Arguments as of find_nearest; counts: (q,), written.
// Returns the neighbors, (counts.sum(),): those of the queries one after another.
nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>
find_within_py(TreeArrays arrays, In<double, 2> queries, MaybeIn<double, 1> factor,
               double squared_radius, int64_t max_neighbors, ExclusionArrays excluded,
               Out<int64_t, 1> counts) {
  const Tree tree = searched_tree_of(arrays);
  const size_t q = queries.shape(0);
  require_shape(counts, "counts", "(q,)", q);
  const Exclusions exclusions = exclusions_of(tree, queries, factor, excluded);
  auto *rows = new std::vector<int32_t>;
  nb::capsule owner(rows, [](void *p) noexcept { delete static_cast<std::vector<int32_t> *>(p); });
  {
    nb::gil_scoped_release release;
    const auto find = factor ? &find_within<true> : &find_within<false>;
    find(tree, queries.data(), q, pointer_of(factor), squared_radius, max_neighbors, exclusions,
         counts.data(), *rows);
  }
  return {rows->data(), {rows->size()}, owner};
}

void require_rows(const In<int32_t, 2> &order, size_t n) {
  for (size_t i = 0; i < order.size(); i++)
    require(order.data()[i] < int64_t(n), "order names rows that are not there");
}

// order: (n_leaves, L); values: (n, t); sums: (2 * n_leaves - 1, t), written
void sum_nodes_py(In<int32_t, 2> order, In<double, 2> values, Out<double, 2> sums) {
  const int64_t n_leaves = order.shape(0), L = order.shape(1), t = values.shape(1);
  require(n_leaves > 0 && L > 0, "the tree is empty");
  require_shape(sums, "sums", "(2 * n_leaves - 1, t)", 2 * n_leaves - 1, t);
  require_rows(order, values.shape(0));
  nb::gil_scoped_release release;
  sum_nodes(order.data(), n_leaves, L, values.data(), t, sums.data());
}

// row_shares: (n,); shares: (n_nodes,), means, variances: (n_nodes, d), written
void find_moments_py(TreeArrays arrays, In<double, 1> row_shares, Out<double, 1> shares,
                     Out<double, 2> means, Out<double, 2> variances) {
  const Tree tree = tree_of(arrays);
  require_shape(shares, "shares", "(n_nodes,)", tree.n_nodes());
  require_shape(means, "means", "(n_nodes, d)", tree.n_nodes(), tree.d);
  require_shape(variances, "variances", "(n_nodes, d)", tree.n_nodes(), tree.d);
  require_rows(std::get<1>(arrays), row_shares.shape(0));
  nb::gil_scoped_release release;
  find_moments(tree, row_shares.data(), shares.data(), means.data(), variances.data());
}

// The tree may have leaves of any size; means: (n_nodes, d) and squared_radii: (n_nodes,) in units;
// places: (n,) of each row in order; squared_limits: (q,), in units; units: (q, m), written
void find_units_py(TreeArrays arrays, In<double, 2> means, In<double, 1> squared_radii,
                   In<int32_t, 1> places, In<double, 2> queries, In<double, 1> squared_limits,
                   ExclusionArrays excluded, Out<int32_t, 2> units) {
  const Tree tree = tree_of(arrays);
  const int64_t q = queries.shape(0), n = places.shape(0), m = units.shape(1);
  require(has_shape(units, q, m) && m > 0, "units must have shape (q, m), m > 0");
  require_shape(squared_limits, "squared_limits", "(q,)", q);
  require(n <= tree.n_leaves * tree.L && n > (tree.n_leaves - 1) * tree.L,
          "places must have shape (n,)");
  require_shape(means, "means", "(2 * n_leaves - 1, d)", tree.n_nodes(), tree.d);
  require_shape(squared_radii, "squared_radii", "(2 * n_leaves - 1,)", tree.n_nodes());
  require(n + tree.n_nodes() <= MOST_ROWS, "too many points for 32-bit numbers of units");
  const Exclusions exclusions = exclusions_of(tree, queries, {}, excluded);
  const CoarseTree coarse{tree, means.data(), squared_radii.data(), places.data(), n};
  nb::gil_scoped_release release;
  find_units(coarse, queries.data(), q, squared_limits.data(), exclusions, m, units.data());
}

int64_t n_groups(int64_t n_leaves) { return Groups(n_leaves).n_groups; }

int64_t n_regions(int64_t n_leaves) { return Regions(Groups(n_leaves)).n_regions; }

}  // namespace

void bind_tree(nb::module_ &m) {
  m.attr("LEAF_MULTIPLE") = LEAF_MULTIPLE;
  m.attr("GROUP") = GROUP;
  define(m, "build_tree", &build_tree);
  define(m, "n_groups", &n_groups);
  define(m, "n_regions", &n_regions);
  define(m, "encode_tree", &encode_tree_py);
  define(m, "find_near", &find_near_py);
  define(m, "find_nearest", &find_nearest_py);
  define(m, "find_within", &find_within_py);
  define(m, "sum_nodes", &sum_nodes_py);
  define(m, "find_moments", &find_moments_py);
  define(m, "find_units", &find_units_py);
}
