// SPDX-License-Identifier: BSD-3-Clause
// Sums of the leaves that rows of inputs fall into, tree by tree. Nothing here is wide: a row goes
// from node to node, and what costs is waiting for the next one, so rows are taken four at a time.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

namespace nb = nanobind;

namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

void require(bool is_true, const char *what) {
  if (!is_true) throw nb::value_error((std::string("boosted trees: ") + what).c_str());
}

struct Nodes {
  const int32_t *feature;  // -1: a leaf
  const double *threshold;
  const int32_t *left, *right;
  const double *value;
};

// The node after `at` for this row; a leaf stays.
inline int32_t next_node(const Nodes &nodes, int32_t at, const double *x, bool &is_inside) {
  const int32_t feature = nodes.feature[at];
  if (feature < 0) return at;
  is_inside = true;
  return x[feature] <= nodes.threshold[at] ? nodes.left[at] : nodes.right[at];
}

constexpr int64_t TOGETHER = 4;

// Leaves of TOGETHER rows from `root` on; rows behind the last are the last one again.
void descend(const Nodes &nodes, int32_t root, const double *const *rows, double *values) {
  int32_t at[TOGETHER];
  for (int64_t i = 0; i < TOGETHER; ++i) at[i] = root;
  bool is_inside = true;
  while (is_inside) {
    is_inside = false;
    for (int64_t i = 0; i < TOGETHER; ++i) at[i] = next_node(nodes, at[i], rows[i], is_inside);
  }
  for (int64_t i = 0; i < TOGETHER; ++i) values[i] = nodes.value[at[i]];
}

// Every child must lie behind its parent: then no path is endless, and none leaves the arrays.
void require_paths(const Nodes &nodes, int64_t n_nodes, int64_t d) {
  for (int64_t i = 0; i < n_nodes; ++i) {
    if (nodes.feature[i] < 0) continue;
    require(nodes.feature[i] < d, "a node asks for an input that does not exist");
    require(nodes.left[i] > i && nodes.left[i] < n_nodes && nodes.right[i] > i &&
                nodes.right[i] < n_nodes,
            "a node's children do not lie behind it");
  }
}

void sum_leaves(Array<const double, 2> X, Array<const int32_t, 1> feature,
                Array<const double, 1> threshold, Array<const int32_t, 1> left,
                Array<const int32_t, 1> right, Array<const double, 1> value,
                Array<const int32_t, 1> roots, Array<const int64_t, 1> ends,
                Array<double, 2> sums) {
  const int64_t q = X.shape(0), d = X.shape(1), n_nodes = feature.shape(0);
  const int64_t n_roots = roots.shape(0), n_sums = ends.shape(0);
  require(int64_t(threshold.shape(0)) == n_nodes && int64_t(left.shape(0)) == n_nodes &&
              int64_t(right.shape(0)) == n_nodes && int64_t(value.shape(0)) == n_nodes,
          "nodes must have all of their values");
  require(int64_t(sums.shape(0)) == q && int64_t(sums.shape(1)) == n_sums,
          "sums must have shape (q, n_sums)");
  const Nodes nodes{feature.data(), threshold.data(), left.data(), right.data(), value.data()};
  require_paths(nodes, n_nodes, d);
  for (int64_t k = 0; k < n_roots; ++k)
    require(roots.data()[k] >= 0 && roots.data()[k] < n_nodes, "a root is no node");
  int64_t last = 0;
  for (int64_t k = 0; k < n_sums; ++k) {
    require(ends.data()[k] >= last && ends.data()[k] <= n_roots, "sums must be of trees in order");
    last = ends.data()[k];
  }
  nb::gil_scoped_release release;
  for (int64_t first = 0; first < q; first += TOGETHER) {
    const double *rows[TOGETHER];
    for (int64_t i = 0; i < TOGETHER; ++i)
      rows[i] = X.data() + (first + i < q ? first + i : q - 1) * d;
    int64_t start = 0;
    for (int64_t k = 0; k < n_sums; ++k) {
      double total[TOGETHER] = {}, values[TOGETHER];
      for (int64_t r = start; r < ends.data()[k]; ++r) {
        descend(nodes, roots.data()[r], rows, values);
        for (int64_t i = 0; i < TOGETHER; ++i) total[i] += values[i];
      }
      start = ends.data()[k];
      for (int64_t i = 0; i < TOGETHER && first + i < q; ++i)
        sums.data()[(first + i) * n_sums + k] = total[i];
    }
  }
}

}  // namespace

void bind_boosted(nb::module_ &m) {
  using namespace nb::literals;
  m.def("sum_leaves", &sum_leaves, "X"_a, "feature"_a, "threshold"_a, "left"_a, "right"_a,
        "value"_a, "roots"_a, "ends"_a, "sums"_a,
        "Sums (q, k) of the leaves that rows (q, d) fall into, over the trees up to each end.");
}
