// SPDX-License-Identifier: BSD-3-Clause
// Python bindings of the neighbor search. nanobind refuses wrong dtypes, numbers of dimensions and
// strides (TypeError; nothing is converted silently); sizes that contradict each other are refused
// here (ValueError).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>

#include <nanobind/stl/optional.h>

#include "approximate.h"
#include "coarse.h"
#include "moments.h"
#include "nearest.h"
#include "search.h"

namespace nb = nanobind;

namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using MaybeArray = std::optional<Array<const T, N>>;

void require(bool is_true, const char *what) {
  if (!is_true) throw nb::value_error((std::string("neighbor search: ") + what).c_str());
}

// Of leaves of any size: the search needs whole vectors of them, see `searched_tree_of`.
lsgp::Tree tree_of(const Array<const double, 3> &leaves, const Array<const int32_t, 2> &order,
                   const Array<const double, 3> &boxes) {
  lsgp::Tree tree{leaves.data(),           order.data(),           boxes.data(),
                  int64_t(leaves.shape(0)), int64_t(leaves.shape(1)), int64_t(leaves.shape(2))};
  require(tree.n_leaves > 0 && tree.d > 0 && tree.L > 0, "the tree is empty");
  require(int64_t(order.shape(0)) == tree.n_leaves && int64_t(order.shape(1)) == tree.L,
          "order must have shape (n_leaves, L)");
  require(int64_t(boxes.shape(0)) == tree.n_nodes() && boxes.shape(1) == 2 &&
              int64_t(boxes.shape(2)) == tree.d,
          "boxes must have shape (2 * n_leaves - 1, 2, d)");
  return tree;
}

lsgp::Tree searched_tree_of(const Array<const double, 3> &leaves,
                            const Array<const int32_t, 2> &order,
                            const Array<const double, 3> &boxes) {
  const lsgp::Tree tree = tree_of(leaves, order, boxes);
  require(tree.L % lsgp::LEAF_MULTIPLE == 0, "the points of a leaf do not fill whole vectors");
  return tree;
}

const double *factor_of(const lsgp::Tree &tree, const MaybeArray<double, 1> &factor) {
  require(!factor || int64_t(factor->shape(0)) == tree.d, "factor must have shape (d,)");
  return factor ? factor->data() : nullptr;
}

lsgp::Exclusions exclusions_of(const lsgp::Tree &tree, size_t q,
                               const MaybeArray<int32_t, 1> &exclude,
                               const MaybeArray<double, 1> &radius,
                               const MaybeArray<double, 1> &unit,
                               const MaybeArray<int32_t, 1> &groups,
                               const MaybeArray<int32_t, 1> &query_groups) {
  require(!exclude || exclude->shape(0) == q, "exclude must have shape (q,)");
  require(!radius || radius->shape(0) == q, "exclusion_radius must have shape (q,)");
  require(!radius || unit, "exclusion_radius needs unit");
  require(!unit || int64_t(unit->shape(0)) == tree.d, "unit must have shape (d,)");
  require(bool(groups) == bool(query_groups), "groups and query_groups come together");
  require(!query_groups || query_groups->shape(0) == q, "query_groups must have shape (q,)");
  // Rows may have left the tree: how many there are, it does not know.
  require(!groups || int64_t(groups->shape(0)) <= tree.n_leaves * tree.L,
          "groups must have shape (n,)");
  return {exclude ? exclude->data() : nullptr, radius ? radius->data() : nullptr,
          unit ? unit->data() : nullptr, groups ? groups->data() : nullptr,
          query_groups ? query_groups->data() : nullptr,
          groups ? int64_t(groups->shape(0)) : 0};
}

// points: (n_leaves * L, d), the first n rows given; becomes (n_leaves, d, L) in place
// order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
void build_tree(Array<double, 2> points, int64_t n, Array<int32_t, 2> order,
                Array<double, 3> boxes, int64_t n_threads) {
  const int64_t n_leaves = int64_t(order.shape(0)), L = int64_t(order.shape(1));
  const int64_t d = int64_t(points.shape(1));
  require(n_leaves > 0 && d > 0 && L > 0, "the tree is empty");
  require(int64_t(points.shape(0)) == n_leaves * L, "points must have shape (n_leaves * L, d)");
  require(n <= n_leaves * L && n > (n_leaves - 1) * L, "n points do not fill n_leaves leaves");
  require(n_leaves * L <= std::numeric_limits<int32_t>::max(), "too many points for 32-bit rows");
  require(int64_t(boxes.shape(0)) == 2 * n_leaves - 1 && boxes.shape(1) == 2 &&
              int64_t(boxes.shape(2)) == d,
          "boxes must have shape (2 * n_leaves - 1, 2, d)");
  nb::gil_scoped_release release;
  lsgp::TreeBuilder(points.data(), order.data(), boxes.data(), n, n_leaves, d, L)
      .build(n_threads);
}

// T: of a byte, written or read
template <class T>
void require_codes(const lsgp::Tree &tree, const Array<T, 3> &halves, const Array<T, 3> &points,
                   const Array<T, 4> &leaf_boxes, const Array<T, 4> &group_boxes) {
  require(tree.L == lsgp::BLOCK, "the points of a leaf do not fill a block");
  require(tree.n_leaves * tree.L <= std::numeric_limits<int32_t>::max(),
          "too many points for 32-bit places");
  const auto has_shape = [](const auto &array, int64_t a, int64_t b, int64_t c) {
    return int64_t(array.shape(0)) == a && int64_t(array.shape(1)) == b &&
           int64_t(array.shape(2)) == c;
  };
  require(has_shape(halves, tree.n_leaves, tree.d, tree.L / 2),
          "halves must have shape (n_leaves, d, L / 2)");
  require(has_shape(points, tree.n_leaves, tree.L, tree.d),
          "points must have shape (n_leaves, L, d)");
  const lsgp::Groups groups(tree.n_leaves);
  require(has_shape(leaf_boxes, groups.n_groups, 2, tree.d) &&
              int64_t(leaf_boxes.shape(3)) == lsgp::GROUP,
          "leaf_boxes must have shape (n_groups, 2, d, GROUP)");
  require(has_shape(group_boxes, lsgp::Regions(groups).n_regions, 2, tree.d) &&
              int64_t(group_boxes.shape(3)) == lsgp::GROUP,
          "group_boxes must have shape (n_regions, 2, d, GROUP)");
}

// The codes of a tree, for `find_near`: leaves, order, boxes as of find_nearest
// halves: (n_leaves, d, L / 2), points: (n_leaves, L, d), leaf_boxes: (n_groups, 2, d, GROUP),
// group_boxes: (n_regions, 2, d, GROUP), all written
void encode_tree(Array<const double, 3> leaves, Array<const int32_t, 2> order,
                 Array<const double, 3> boxes, Array<uint8_t, 3> halves, Array<uint8_t, 3> points,
                 Array<uint8_t, 4> leaf_boxes, Array<uint8_t, 4> group_boxes) {
  const lsgp::Tree tree = tree_of(leaves, order, boxes);
  require_codes(tree, halves, points, leaf_boxes, group_boxes);
  nb::gil_scoped_release release;
  lsgp::encode_halves(tree, halves.data(), points.data(), leaf_boxes.data(), group_boxes.data());
}

// Arguments as of find_nearest; halves, points, leaf_boxes, group_boxes: as of encode_tree
// reach: a leaf is opened up to this share of the farthest neighbor's squared distance
void find_near(Array<const double, 3> leaves, Array<const int32_t, 2> order,
               Array<const double, 3> boxes, Array<const uint8_t, 3> halves,
               Array<const uint8_t, 3> points, Array<const uint8_t, 4> leaf_boxes,
               Array<const uint8_t, 4> group_boxes, double reach, Array<const double, 2> queries,
               MaybeArray<double, 1> factor, MaybeArray<int32_t, 1> exclude,
               MaybeArray<double, 1> exclusion_radius, MaybeArray<double, 1> unit,
               MaybeArray<int32_t, 1> groups, MaybeArray<int32_t, 1> query_groups,
               Array<int32_t, 2> neighbors, std::optional<Array<double, 2>> distances) {
  const lsgp::Tree tree = tree_of(leaves, order, boxes);
  require_codes(tree, halves, points, leaf_boxes, group_boxes);
  const size_t q = queries.shape(0), k = neighbors.shape(1);
  require(reach > 0 && reach <= 1, "reach must be in (0, 1]");
  require(int64_t(queries.shape(1)) == tree.d, "queries must have shape (q, d)");
  require(neighbors.shape(0) == q && k > 0, "neighbors must have shape (q, k), k > 0");
  require(!distances || (distances->shape(0) == q && distances->shape(1) == k),
          "distances must have the shape of neighbors");
  const lsgp::Exclusions exclusions =
      exclusions_of(tree, q, exclude, exclusion_radius, unit, groups, query_groups);
  const double *scaling = factor_of(tree, factor);
  const lsgp::HalfCodedTree coded{tree, halves.data(), points.data(), leaf_boxes.data(),
                                  group_boxes.data()};
  nb::gil_scoped_release release;
  const auto find = scaling ? &lsgp::find_near<true> : &lsgp::find_near<false>;
  find(coded, reach, queries.data(), int64_t(q), scaling, int64_t(k), exclusions,
       neighbors.data(), distances ? distances->data() : nullptr);
}

// leaves: (n_leaves, d, L); order: (n_leaves, L); boxes: (2 * n_leaves - 1, 2, d)
// queries: (q, d), in units; factor: (d,) unit / lengthscale, None if all are 1
// exclude, exclusion_radius, query_groups: (q,); unit: (d,); groups: (n,)
// neighbors: (q, k), written; distances: (q, k) squared, written if given
void find_nearest(Array<const double, 3> leaves, Array<const int32_t, 2> order,
                  Array<const double, 3> boxes, Array<const double, 2> queries,
                  MaybeArray<double, 1> factor, MaybeArray<int32_t, 1> exclude,
                  MaybeArray<double, 1> exclusion_radius, MaybeArray<double, 1> unit,
                  MaybeArray<int32_t, 1> groups, MaybeArray<int32_t, 1> query_groups,
                  Array<int32_t, 2> neighbors, std::optional<Array<double, 2>> distances) {
  const lsgp::Tree tree = searched_tree_of(leaves, order, boxes);
  const size_t q = queries.shape(0), k = neighbors.shape(1);
  require(int64_t(queries.shape(1)) == tree.d, "queries must have shape (q, d)");
  require(neighbors.shape(0) == q && k > 0, "neighbors must have shape (q, k), k > 0");
  require(!distances || (distances->shape(0) == q && distances->shape(1) == k),
          "distances must have the shape of neighbors");
  const lsgp::Exclusions exclusions =
      exclusions_of(tree, q, exclude, exclusion_radius, unit, groups, query_groups);
  const double *scaling = factor_of(tree, factor);
  nb::gil_scoped_release release;
  const auto find = scaling ? &lsgp::find_nearest<true> : &lsgp::find_nearest<false>;
  find(tree, queries.data(), int64_t(q), scaling, int64_t(k), exclusions, neighbors.data(),
       distances ? distances->data() : nullptr);
}

// Arguments as of find_nearest; counts: (q,), written.
// Returns the neighbors, (counts.sum(),): those of the queries one after another.
nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>
find_within(Array<const double, 3> leaves, Array<const int32_t, 2> order,
            Array<const double, 3> boxes, Array<const double, 2> queries,
            MaybeArray<double, 1> factor, double squared_radius, int64_t max_neighbors,
            MaybeArray<int32_t, 1> exclude, MaybeArray<double, 1> exclusion_radius,
            MaybeArray<double, 1> unit,
            MaybeArray<int32_t, 1> groups, MaybeArray<int32_t, 1> query_groups,
            Array<int64_t, 1> counts) {
  const lsgp::Tree tree = searched_tree_of(leaves, order, boxes);
  const size_t q = queries.shape(0);
  require(int64_t(queries.shape(1)) == tree.d, "queries must have shape (q, d)");
  require(counts.shape(0) == q, "counts must have shape (q,)");
  const lsgp::Exclusions exclusions =
      exclusions_of(tree, q, exclude, exclusion_radius, unit, groups, query_groups);
  const double *scaling = factor_of(tree, factor);
  auto *rows = new std::vector<int32_t>;
  nb::capsule owner(rows, [](void *p) noexcept { delete static_cast<std::vector<int32_t> *>(p); });
  {
    nb::gil_scoped_release release;
    const auto find = scaling ? &lsgp::find_within<true> : &lsgp::find_within<false>;
    find(tree, queries.data(), int64_t(q), scaling, squared_radius, max_neighbors, exclusions,
         counts.data(), *rows);
  }
  return {rows->data(), {rows->size()}, owner};
}

void require_rows(const Array<const int32_t, 2> &order, size_t n) {
  const int32_t *rows = order.data();
  for (size_t i = 0; i < order.size(); i++)
    require(rows[i] < int64_t(n), "order names rows that are not there");
}

// order: (n_leaves, L); values: (n, t); sums: (2 * n_leaves - 1, t), written
void sum_nodes(Array<const int32_t, 2> order, Array<const double, 2> values,
               Array<double, 2> sums) {
  require(order.shape(0) > 0 && order.shape(1) > 0, "the tree is empty");
  require(sums.shape(0) == 2 * order.shape(0) - 1 && sums.shape(1) == values.shape(1),
          "sums must have shape (2 * n_leaves - 1, t)");
  require_rows(order, values.shape(0));
  nb::gil_scoped_release release;
  lsgp::sum_nodes(order.data(), int64_t(order.shape(0)), int64_t(order.shape(1)), values.data(),
                  int64_t(values.shape(1)), sums.data());
}

// leaves, order, boxes: as of find_units; row_shares: (n,)
// shares: (n_nodes,), means, variances: (n_nodes, d), written
void find_moments(Array<const double, 3> leaves, Array<const int32_t, 2> order,
                  Array<const double, 3> boxes, Array<const double, 1> row_shares,
                  Array<double, 1> shares, Array<double, 2> means, Array<double, 2> variances) {
  const lsgp::Tree tree = tree_of(leaves, order, boxes);
  require(int64_t(shares.shape(0)) == tree.n_nodes(), "shares must have shape (n_nodes,)");
  for (const auto *array : {&means, &variances})
    require(int64_t(array->shape(0)) == tree.n_nodes() && int64_t(array->shape(1)) == tree.d,
            "means and variances must have shape (n_nodes, d)");
  require_rows(order, row_shares.shape(0));
  nb::gil_scoped_release release;
  lsgp::NodeMoments(tree, row_shares.data(), shares.data(), means.data(), variances.data()).run();
}

// leaves, order, boxes: as of find_nearest, but of leaves of any size; means: (n_nodes, d) and
// squared_radii: (n_nodes,) in units; places: (n,) of each row in order
// queries, exclude, exclusion_radius, unit, groups, query_groups: as of find_nearest
// squared_limits: (q,), in units; units: (q, m), written
void find_units(Array<const double, 3> leaves, Array<const int32_t, 2> order,
                Array<const double, 3> boxes, Array<const double, 2> means,
                Array<const double, 1> squared_radii, Array<const int32_t, 1> places,
                Array<const double, 2> queries, Array<const double, 1> squared_limits,
                MaybeArray<int32_t, 1> exclude, MaybeArray<double, 1> exclusion_radius,
                Array<const double, 1> unit, MaybeArray<int32_t, 1> groups,
                MaybeArray<int32_t, 1> query_groups, Array<int32_t, 2> units) {
  const lsgp::Tree tree = tree_of(leaves, order, boxes);
  const size_t q = queries.shape(0), n = places.shape(0);
  require(int64_t(queries.shape(1)) == tree.d, "queries must have shape (q, d)");
  require(units.shape(0) == q && units.shape(1) > 0, "units must have shape (q, m), m > 0");
  require(squared_limits.shape(0) == q, "squared_limits must have shape (q,)");
  require(int64_t(n) <= tree.n_leaves * tree.L && int64_t(n) > (tree.n_leaves - 1) * tree.L,
          "places must have shape (n,)");
  require(int64_t(means.shape(0)) == tree.n_nodes() && int64_t(means.shape(1)) == tree.d,
          "means must have shape (2 * n_leaves - 1, d)");
  require(int64_t(squared_radii.shape(0)) == tree.n_nodes(),
          "squared_radii must have shape (2 * n_leaves - 1,)");
  require(int64_t(n) + tree.n_nodes() <= std::numeric_limits<int32_t>::max(),
          "too many points for 32-bit numbers of units");
  const lsgp::Exclusions exclusions = exclusions_of(
      tree, q, exclude, exclusion_radius, MaybeArray<double, 1>(unit), groups, query_groups);
  const lsgp::CoarseTree coarse{tree, means.data(), squared_radii.data(), int64_t(n)};
  nb::gil_scoped_release release;
  lsgp::find_units(coarse, places.data(), queries.data(), int64_t(q), squared_limits.data(),
                   exclusions, int64_t(units.shape(1)), units.data());
}

}  // namespace

void bind_tree(nb::module_ &m) {
  m.attr("LEAF_MULTIPLE") = lsgp::LEAF_MULTIPLE;
  m.def("build_tree", &build_tree, nb::arg("points").noconvert(), nb::arg("n"),
        nb::arg("order").noconvert(), nb::arg("boxes").noconvert(), nb::arg("n_threads"));
  m.def("n_groups", [](int64_t n_leaves) { return lsgp::Groups(n_leaves).n_groups; },
        nb::arg("n_leaves"));
  m.def("n_regions",
        [](int64_t n_leaves) { return lsgp::Regions(lsgp::Groups(n_leaves)).n_regions; },
        nb::arg("n_leaves"));
  m.attr("GROUP") = lsgp::GROUP;
  m.def("encode_tree", &encode_tree, nb::arg("leaves").noconvert(), nb::arg("order").noconvert(),
        nb::arg("boxes").noconvert(), nb::arg("halves").noconvert(),
        nb::arg("points").noconvert(), nb::arg("leaf_boxes").noconvert(),
        nb::arg("group_boxes").noconvert());
  m.def("find_near", &find_near, nb::arg("leaves").noconvert(), nb::arg("order").noconvert(),
        nb::arg("boxes").noconvert(), nb::arg("halves").noconvert(),
        nb::arg("points").noconvert(), nb::arg("leaf_boxes").noconvert(),
        nb::arg("group_boxes").noconvert(), nb::arg("reach"), nb::arg("queries").noconvert(),
        nb::arg("factor").noconvert().none(), nb::arg("exclude").noconvert().none(),
        nb::arg("exclusion_radius").noconvert().none(), nb::arg("unit").noconvert().none(),
        nb::arg("groups").noconvert().none(), nb::arg("query_groups").noconvert().none(),
        nb::arg("neighbors").noconvert(), nb::arg("distances").noconvert().none());
  m.def("find_nearest", &find_nearest, nb::arg("leaves").noconvert(),
        nb::arg("order").noconvert(), nb::arg("boxes").noconvert(),
        nb::arg("queries").noconvert(), nb::arg("factor").noconvert().none(),
        nb::arg("exclude").noconvert().none(),
        nb::arg("exclusion_radius").noconvert().none(), nb::arg("unit").noconvert().none(),
        nb::arg("groups").noconvert().none(), nb::arg("query_groups").noconvert().none(),
        nb::arg("neighbors").noconvert(), nb::arg("distances").noconvert().none());
  m.def("find_within", &find_within, nb::arg("leaves").noconvert(), nb::arg("order").noconvert(),
        nb::arg("boxes").noconvert(), nb::arg("queries").noconvert(),
        nb::arg("factor").noconvert().none(), nb::arg("squared_radius"), nb::arg("max_neighbors"),
        nb::arg("exclude").noconvert().none(),
        nb::arg("exclusion_radius").noconvert().none(), nb::arg("unit").noconvert().none(),
        nb::arg("groups").noconvert().none(), nb::arg("query_groups").noconvert().none(),
        nb::arg("counts").noconvert());
  m.def("sum_nodes", &sum_nodes, nb::arg("order").noconvert(), nb::arg("values").noconvert(),
        nb::arg("sums").noconvert());
  m.def("find_moments", &find_moments, nb::arg("leaves").noconvert(),
        nb::arg("order").noconvert(), nb::arg("boxes").noconvert(),
        nb::arg("row_shares").noconvert(), nb::arg("shares").noconvert(),
        nb::arg("means").noconvert(), nb::arg("variances").noconvert());
  m.def("find_units", &find_units, nb::arg("leaves").noconvert(), nb::arg("order").noconvert(),
        nb::arg("boxes").noconvert(), nb::arg("means").noconvert(),
        nb::arg("squared_radii").noconvert(), nb::arg("places").noconvert(),
        nb::arg("queries").noconvert(), nb::arg("squared_limits").noconvert(),
        nb::arg("exclude").noconvert().none(), nb::arg("exclusion_radius").noconvert().none(),
        nb::arg("unit").noconvert(), nb::arg("groups").noconvert().none(),
        nb::arg("query_groups").noconvert().none(), nb::arg("units").noconvert());
}
