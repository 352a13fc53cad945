// SPDX-License-Identifier: BSD-3-Clause
// A query of the tree of _core/tree.h, and what a warp has found for it. The squared distance is the
// float64 sum of squares in the order of the dimensions, every operation rounded, and what is found is
// ordered by (squared distance, number), so that a neighborhood is the one that the host finds.
#pragma once

namespace lsgp {

constexpr int LARGEST_DEPTH = 40;  // of a tree whose rows are 32-bit numbers
inline unsigned ballot(bool is_true) { return __ballot_sync(ALL_LANES, is_true); }
inline int n_set(unsigned bits) { return __popc(bits); }

// point: coordinate j at point[j * L]
inline double squared_distance(const Query &query, const double *point, int d, int L) {
  double sum = 0;
  for (int j = 0; j < d; j++) {
    double gap = point[j * L] - query.z[j];
    if (query.factor) gap = product(gap, query.factor[j]);
    sum = __dadd_rn(sum, product(gap, gap));
  }
  return sum;
}
inline double gap_to_box(const Query &query, const double *box, int j, int d) {
  const double gap = gap_to_box(box[j], box[d + j], query.z[j]);
  return query.factor ? gap * query.factor[j] : gap;
}

// The candidates of one query, which its warp keeps in shared memory.
struct Found {
  double *distance;  // (size,)
  int *row;          // (size,)
  int lane, size, k, count;
  double limit;  // squared distance above which points and boxes are dropped
  double last_distance;
  int last_row;  // the k-th nearest when last sorted: others must come before it

  bool is_before(int a, int b) const {
    return distance[a] < distance[b] || (distance[a] == distance[b] && row[a] < row[b]);
  }
  void add(bool passes, double value, int number) {
    const unsigned all = ballot(passes);
    const int place = count + n_set(all & ((1u << lane) - 1));
    if (passes && place < size) distance[place] = value, row[place] = number;
    count += n_set(all);
  }
  // Bitonic, by the warp, of the next power of two.
  void sort() {
    int n = 2;
    while (n < count) n *= 2;
    for (int i = count + lane; i < n; i += WARP) distance[i] = INFINITY, row[i] = 0x7fffffff;
    __syncwarp();
    for (int span = 2; span <= n; span *= 2)
      for (int stride = span / 2; stride; stride /= 2) {
        for (int e = lane; e < n / 2; e += WARP) {
          const int a = 2 * e - (e & (stride - 1)), b = a + stride;
          const bool is_rising = (a & span) == 0;
          if (is_before(is_rising ? b : a, is_rising ? a : b)) {
            const double other = distance[a];
            const int number = row[a];
            distance[a] = distance[b], row[a] = row[b];
            distance[b] = other, row[b] = number;
          }
        }
        __syncwarp();
      }
  }
  void keep_nearest(int d) {
    sort();
    if (count < k) return;
    count = k;
    last_distance = distance[k - 1], last_row = row[k - 1];
    limit = with_slack(last_distance, d);
    __syncwarp();
  }
};

}  // namespace lsgp
