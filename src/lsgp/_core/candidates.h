// SPDX-License-Identifier: BSD-3-Clause
// What a search has found so far.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tree.h"

namespace lsgp {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

// A squared distance and a row, packed so that one comparison of integers orders by distance and
// then by row: the bits of floating-point numbers that are not negative are ordered as they are.
typedef unsigned __int128 Candidate;

inline Candidate candidate_of(double distance, int32_t row) {
  uint64_t bits;
  std::memcpy(&bits, &distance, sizeof bits);
  return Candidate(bits) << 64 | uint32_t(row);
}
inline int32_t row_of(Candidate candidate) { return int32_t(uint32_t(candidate)); }
inline double distance_of(Candidate candidate) {
  const uint64_t bits = uint64_t(candidate >> 64);
  double distance;
  std::memcpy(&distance, &bits, sizeof bits);
  return distance;
}

constexpr int64_t FEW = 12;  // candidates that are sorted by insertion

template <class T> inline void sort_few(T *a, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const T x = a[i];
    int64_t j = i;
    for (; j > 0 && x < a[j - 1]; j--) a[j] = a[j - 1];
    a[j] = x;
  }
}

// Moves what is less than the median of three to the front, the rest to scratch; returns how many
// are less: at least 1 and less than n, since no two candidates are equal. On which side one falls
// cannot be predicted, so there is no branch on it: several times faster than std::nth_element.
// Swaps in place would be no good, since they wait for what has just been stored.
template <class T> inline int64_t partition(T *a, int64_t n, T *scratch) {
  const T x = a[n / 4], y = a[n / 2], z = a[n - n / 4 - 1];
  const T pivot = std::max(std::min(x, y), std::min(std::max(x, y), z));
  int64_t n_less = 0;
  for (int64_t i = 0; i < n; i++) {
    const T value = a[i];
    a[n_less] = value;
    scratch[i - n_less] = value;
    n_less += value < pivot;
  }
  return n_less;
}

// scratch: (n,), as below
template <class T> inline void sort(T *a, int64_t n, T *scratch) {
  while (n > FEW) {
    const int64_t n_less = partition(a, n, scratch);
    std::copy(scratch, scratch + n - n_less, a + n_less);
    sort(a, n_less, scratch);
    a += n_less, n -= n_less;
  }
  sort_few(a, n);
}

// Moves the k least to the front, returns the largest of them, and forgets the rest.
template <class T> inline T select(T *a, int64_t n, int64_t k, T *scratch) {
  while (n > FEW) {
    const int64_t n_less = partition(a, n, scratch);
    if (k <= n_less) {
      n = n_less;
    } else {
      std::copy(scratch, scratch + n - n_less, a + n_less);
      a += n_less, n -= n_less, k -= n_less;
    }
  }
  sort_few(a, n);
  return a[k - 1];
}

// The k least of all that was added, and a few more: selecting now and then is cheaper than a heap.
template <class T> class Least {
 protected:
  int64_t k = 0, count = 0, patience = 0;
  std::vector<T> found, scratch;

  // n_more: that may wait for a selection, at least; room: the most that one step adds
  void start(int64_t k_, int64_t n_more, int64_t room) {
    k = k_, count = 0, patience = k + std::max(k / 2, n_more);
    found.resize(patience + room);
    scratch.resize(patience + room);
  }
  bool is_time(bool has_limit) const { return count >= patience || (count >= k && !has_limit); }
  // Forgets all but the k least, returns the largest of them.
  T keep_least() {
    const T last = select(found.data(), count, k, scratch.data());
    count = k;
    return last;
  }

 public:
  void add(T x) { found[count++] = x; }
};

class NearestFound : public Least<Candidate> {
 public:
  double limit = INFINITE;  // squared distance above which the filter drops points and boxes

  void start(int64_t k, int64_t d_, int64_t L) {
    Least::start(k, 16, L);
    d = d_, limit = INFINITE;
    last = candidate_of(INFINITE, std::numeric_limits<int32_t>::max());
  }
  bool admits(Candidate candidate) const { return candidate < last; }
  void leaf_done() {
    if (is_time(limit < INFINITE)) keep_nearest();
  }
  // A bound of the k-th squared distance, however it was rounded; infinite if there are fewer.
  double last_square() {
    if (count > k || (count == k && limit == INFINITE)) keep_nearest();
    return limit;
  }
  int64_t finish() {
    if (count > k) keep_nearest();
    sort(found.data(), count, scratch.data());
    return count;
  }
  const Candidate *data() const { return found.data(); }

 private:
  int64_t d = 0;
  Candidate last = 0;  // the k-th nearest when last selected: others must come before it

  void keep_nearest() {
    last = keep_least();
    limit = with_slack(distance_of(last), d);
  }
};

// All within a radius. Beyond max_count they are only counted.
class WithinFound {
 public:
  double limit = 0;

  WithinFound(double squared_radius, int64_t d, int64_t max_count)
      : limit(with_slack(squared_radius, d)), squared_radius(squared_radius),
        max_count(max_count) {}
  void start() { count = 0, found.clear(); }
  bool admits(Candidate candidate) const { return distance_of(candidate) <= squared_radius; }
  void add(Candidate candidate) {
    if (++count <= max_count) found.push_back(candidate);
  }
  void leaf_done() {}
  int64_t finish() {
    scratch.resize(found.size());
    sort(found.data(), int64_t(found.size()), scratch.data());
    return count;
  }
  const std::vector<Candidate> &sorted() const { return found; }

 private:
  double squared_radius;
  int64_t max_count, count = 0;
  std::vector<Candidate> found, scratch;
};

}  // namespace lsgp
