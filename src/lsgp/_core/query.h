// SPDX-License-Identifier: BSD-3-Clause
// A query, and which points may not be its neighbors.
#pragma once

#include <cstdint>

namespace lsgp {

// The value, rounded: keeps the compiler from fusing a product into the sum that follows.
template <class V> inline V rounded(V x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}

// Of all queries. Null pointers: no such exclusion.
struct Exclusions {
  const int32_t *rows;          // (q,) one row that is not a neighbor of the query; -1: none
  const double *radii;          // (q,) radius, in the unscaled metric, without neighbors; 0: none
  const double *unit;           // (d,) what the tree's points were divided by
  const int32_t *groups;        // (n,)
  const int32_t *query_groups;  // (q,) group without neighbors; -1: none
  int64_t n_groups;             // n, or 0 without groups: a damaged tree must not read elsewhere
};

struct Query {
  const double *z = nullptr;       // (d,) in units
  const double *factor = nullptr;  // (d,) unit / lengthscale, positive; null: all 1
  const Exclusions *all = nullptr;
  const int32_t *by_spread = nullptr;  // (d,) inputs, the widest first; null: there are few
  int32_t excluded_row = -1, excluded_group = -1;
  double squared_radius = 0;

  Query() = default;
  // queries: (q, d)
  Query(const double *queries, int64_t i, int64_t d, const double *factor,
        const Exclusions &exclusions, const int32_t *by_spread = nullptr)
      : z(queries + i * d), factor(factor), all(&exclusions), by_spread(by_spread) {
    if (all->rows) excluded_row = all->rows[i];
    if (all->groups) excluded_group = all->query_groups[i];
    if (all->radii) squared_radius = all->radii[i] * all->radii[i];
  }

  // point: coordinate j at point[j * L]
  bool admits(int32_t row, const double *point, int64_t d, int64_t L) const {
    if (row == excluded_row) return false;
    if (excluded_group >= 0 && uint64_t(row) < uint64_t(all->n_groups) &&
        all->groups[row] == excluded_group)
      return false;
    return squared_radius <= 0 || unscaled_distance(point, d, L) >= squared_radius;
  }

 private:
  double unscaled_distance(const double *point, int64_t d, int64_t L) const {
    double sum = 0;
    for (int64_t j = 0; j < d; j++) {
      const double gap = rounded(all->unit[j] * (point[j * L] - z[j]));
      sum += rounded(gap * gap);
    }
    return sum;
  }
};

}  // namespace lsgp
