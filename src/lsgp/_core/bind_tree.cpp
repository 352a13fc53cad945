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

// leaves: (n_leaves, d, L); order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
typedef std::tuple<In<double, 3>, In<int32_t, 2>, In<double, 3>> TreeArrays;
// exclude, radius: (q,); unit: (d,); groups: (n,); query_groups: (q,)
typedef std::tuple<MaybeIn<int32_t, 1>, MaybeIn<double, 1>, MaybeIn<double, 1>,
                   MaybeIn<int32_t, 1>, MaybeIn<int32_t, 1>> ExclusionArrays;

// Of leaves of any size: the search needs whole vectors of them, see `searched_tree_of`.
Tree tree_of(const TreeArrays &arrays) {
  const auto &[leaves, order, boxes] = arrays;
  Tree tree{leaves.data(),           order.data(),           boxes.data(),
            int64_t(leaves.shape(0)), int64_t(leaves.shape(1)), int64_t(leaves.shape(2))};
  require(tree.n_leaves > 0 && tree.d > 0 && tree.L > 0, "the tree is empty");
  require(has_shape(order, tree.n_leaves, tree.L), "order must have shape (n_leaves, L)");
  require(has_shape(boxes, tree.n_nodes(), 2, tree.d),
          "boxes must have shape (2 * n_leaves - 1, 2, d)");
  return tree;
}

Tree searched_tree_of(const TreeArrays &arrays) {
  const Tree tree = tree_of(arrays);
  require(tree.L % LEAF_MULTIPLE == 0, "the points of a leaf do not fill whole vectors");
  return tree;
}

Exclusions exclusions_of(const Tree &tree, size_t q, const ExclusionArrays &arrays) {
  const auto &[exclude, radius, unit, groups, query_groups] = arrays;
  require(!exclude || has_shape(*exclude, q), "exclude must have shape (q,)");
  require(!radius || has_shape(*radius, q), "exclusion_radius must have shape (q,)");
  require(!radius || unit, "exclusion_radius needs unit");
  require(!unit || has_shape(*unit, tree.d), "unit must have shape (d,)");
  require(bool(groups) == bool(query_groups), "groups and query_groups come together");
  require(!query_groups || has_shape(*query_groups, q), "query_groups must have shape (q,)");
  // Rows may have left the tree: how many there are, it does not know.
  require(!groups || int64_t(groups->shape(0)) <= tree.n_leaves * tree.L,
          "groups must have shape (n,)");
  return {pointer_of(exclude), pointer_of(radius),       pointer_of(unit),
          pointer_of(groups),  pointer_of(query_groups), groups ? int64_t(groups->shape(0)) : 0};
}

void require_queries(const Tree &tree, const In<double, 2> &queries,
                     const MaybeIn<double, 1> &factor) {
  require(int64_t(queries.shape(1)) == tree.d, "queries must have shape (q, d)");
  require(!factor || has_shape(*factor, tree.d), "factor must have shape (d,)");
}

void require_neighbors(size_t q, const Out<int32_t, 2> &neighbors,
                       const MaybeOut<double, 2> &squares) {
  const size_t k = neighbors.shape(1);
  require(has_shape(neighbors, q, k) && k > 0, "neighbors must have shape (q, k), k > 0");
  require(!squares || has_shape(*squares, q, k), "distances must have the shape of neighbors");
}

// points: (n_leaves * L, d), the first n rows given; becomes (n_leaves, d, L) in place
// order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
void build_tree(Out<double, 2> points, int64_t n, Out<int32_t, 2> order, Out<double, 3> boxes,
                int64_t n_threads) {
  const int64_t n_leaves = int64_t(order.shape(0)), L = int64_t(order.shape(1));
  const int64_t d = int64_t(points.shape(1));
  require(n_leaves > 0 && d > 0 && L > 0, "the tree is empty");
  require(has_shape(points, n_leaves * L, d), "points must have shape (n_leaves * L, d)");
  require(n <= n_leaves * L && n > (n_leaves - 1) * L, "n points do not fill n_leaves leaves");
  require(n_leaves * L <= std::numeric_limits<int32_t>::max(), "too many points for 32-bit rows");
  require(has_shape(boxes, 2 * n_leaves - 1, 2, d),
          "boxes must have shape (2 * n_leaves - 1, 2, d)");
  nb::gil_scoped_release release;
  TreeBuilder(points.data(), order.data(), boxes.data(), n, n_leaves, d, L).build(n_threads);
}

// The arrays of codes, read or written: halves: (n_leaves, d, L / 2), points: (n_leaves, L, d),
// leaf_boxes: (n_groups, 2, d, GROUP), group_boxes: (n_regions, 2, d, GROUP)
template <template <class, int> class Codes>
void require_codes(const Tree &tree, const Codes<uint8_t, 3> &halves,
                   const Codes<uint8_t, 3> &points, const Codes<uint8_t, 4> &leaf_boxes,
                   const Codes<uint8_t, 4> &group_boxes) {
  require(tree.L == BLOCK, "the points of a leaf do not fill a block");
  require(tree.n_leaves * tree.L <= std::numeric_limits<int32_t>::max(),
          "too many points for 32-bit places");
  require(has_shape(halves, tree.n_leaves, tree.d, tree.L / 2),
          "halves must have shape (n_leaves, d, L / 2)");
  require(has_shape(points, tree.n_leaves, tree.L, tree.d),
          "points must have shape (n_leaves, L, d)");
  const Groups groups(tree.n_leaves);
  require(has_shape(leaf_boxes, groups.n_groups, 2, tree.d, GROUP),
          "leaf_boxes must have shape (n_groups, 2, d, GROUP)");
  require(has_shape(group_boxes, Regions(groups).n_regions, 2, tree.d, GROUP),
          "group_boxes must have shape (n_regions, 2, d, GROUP)");
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
  const size_t q = queries.shape(0), k = neighbors.shape(1);
  require_codes<In>(tree, halves, points, leaf_boxes, group_boxes);
  require(reach > 0 && reach <= 1, "reach must be in (0, 1]");
  require_queries(tree, queries, factor);
  require_neighbors(q, neighbors, squares);
  const Exclusions exclusions = exclusions_of(tree, q, excluded);
  const HalfCodedTree coded{tree, halves.data(), points.data(), leaf_boxes.data(),
                            group_boxes.data()};
  nb::gil_scoped_release release;
  const auto find = factor ? &find_near<true> : &find_near<false>;
  find(coded, reach, queries.data(), int64_t(q), pointer_of(factor), int64_t(k), exclusions,
       neighbors.data(), pointer_of(squares));
}

// queries: (q, d), in units; factor: (d,) unit / lengthscale, None if all are 1
// neighbors: (q, k), written; squares: (q, k) of the distances, written if given
void find_nearest_py(TreeArrays arrays, In<double, 2> queries, MaybeIn<double, 1> factor,
                  ExclusionArrays excluded, Out<int32_t, 2> neighbors,
                  MaybeOut<double, 2> squares) {
  const Tree tree = searched_tree_of(arrays);
  const size_t q = queries.shape(0), k = neighbors.shape(1);
  require_queries(tree, queries, factor);
  require_neighbors(q, neighbors, squares);
  const Exclusions exclusions = exclusions_of(tree, q, excluded);
  nb::gil_scoped_release release;
  const auto find = factor ? &find_nearest<true> : &find_nearest<false>;
  find(tree, queries.data(), int64_t(q), pointer_of(factor), int64_t(k), exclusions,
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
  require_queries(tree, queries, factor);
  require(has_shape(counts, q), "counts must have shape (q,)");
  const Exclusions exclusions = exclusions_of(tree, q, excluded);
  auto *rows = new std::vector<int32_t>;
  nb::capsule owner(rows, [](void *p) noexcept { delete static_cast<std::vector<int32_t> *>(p); });
  {
    nb::gil_scoped_release release;
    const auto find = factor ? &find_within<true> : &find_within<false>;
    find(tree, queries.data(), int64_t(q), pointer_of(factor), squared_radius, max_neighbors,
         exclusions, counts.data(), *rows);
  }
  return {rows->data(), {rows->size()}, owner};
}

void require_rows(const In<int32_t, 2> &order, size_t n) {
  const int32_t *rows = order.data();
  for (size_t i = 0; i < order.size(); i++)
    require(rows[i] < int64_t(n), "order names rows that are not there");
}

// order: (n_leaves, L); values: (n, t); sums: (2 * n_leaves - 1, t), written
void sum_nodes_py(In<int32_t, 2> order, In<double, 2> values, Out<double, 2> sums) {
  require(order.shape(0) > 0 && order.shape(1) > 0, "the tree is empty");
  require(has_shape(sums, 2 * order.shape(0) - 1, values.shape(1)),
          "sums must have shape (2 * n_leaves - 1, t)");
  require_rows(order, values.shape(0));
  nb::gil_scoped_release release;
  sum_nodes(order.data(), int64_t(order.shape(0)), int64_t(order.shape(1)), values.data(),
                  int64_t(values.shape(1)), sums.data());
}

// row_shares: (n,); shares: (n_nodes,), means, variances: (n_nodes, d), written
void find_moments_py(TreeArrays arrays, In<double, 1> row_shares, Out<double, 1> shares,
                  Out<double, 2> means, Out<double, 2> variances) {
  const Tree tree = tree_of(arrays);
  require(has_shape(shares, tree.n_nodes()), "shares must have shape (n_nodes,)");
  for (const auto *array : {&means, &variances})
    require(has_shape(*array, tree.n_nodes(), tree.d),
            "means and variances must have shape (n_nodes, d)");
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
  const size_t q = queries.shape(0), n = places.shape(0), m = units.shape(1);
  require_queries(tree, queries, {});
  require(has_shape(units, q, m) && m > 0, "units must have shape (q, m), m > 0");
  require(has_shape(squared_limits, q), "squared_limits must have shape (q,)");
  require(int64_t(n) <= tree.n_leaves * tree.L && int64_t(n) > (tree.n_leaves - 1) * tree.L,
          "places must have shape (n,)");
  require(has_shape(means, tree.n_nodes(), tree.d),
          "means must have shape (2 * n_leaves - 1, d)");
  require(has_shape(squared_radii, tree.n_nodes()),
          "squared_radii must have shape (2 * n_leaves - 1,)");
  require(int64_t(n) + tree.n_nodes() <= std::numeric_limits<int32_t>::max(),
          "too many points for 32-bit numbers of units");
  const Exclusions exclusions = exclusions_of(tree, q, excluded);
  const CoarseTree coarse{tree, means.data(), squared_radii.data(), places.data(), int64_t(n)};
  nb::gil_scoped_release release;
  find_units(coarse, queries.data(), int64_t(q), squared_limits.data(), exclusions, int64_t(m),
             units.data());
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
