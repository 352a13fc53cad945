// SPDX-License-Identifier: BSD-3-Clause
// The threads of a block, which work on one query together: any number of warps.
#pragma once

// The memory that a block shares, as much of it as the launch asks for.
#ifndef LSGP_SHARED_MEMORY
#define LSGP_SHARED_MEMORY extern __shared__ double2 lsgp_memory[]
#endif
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000)
#endif

#define LSGP_ON_DEVICE

namespace lsgp {

typedef int int32_t;  // what tree.h calls by these names
typedef long long int64_t;
typedef unsigned long long uint64_t;

// Rounded: never fused into the sum that follows.
inline double product(double a, double b) { return __dmul_rn(a, b); }

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARP = 32;

inline int rank() { return int(threadIdx.x); }
inline int n_threads() { return int(blockDim.x); }

template <class V> inline V from_lane(V value, int lane) {
  return __shfl_sync(ALL_LANES, value, lane);
}

// The value of the lane whose number differs in these bits, word by word.
template <class V> inline V of_partner(V value, int bits) {
  unsigned words[sizeof(V) / sizeof(unsigned)];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (unsigned &word : words) word = __shfl_xor_sync(ALL_LANES, word, bits);
  memcpy(&value, words, sizeof value);
  return value;
}

template <class V, class F> inline V reduce_lanes(V value, F combine) {
  for (int o = 16; o; o >>= 1) value = combine(value, of_partner(value, o));
  return value;
}

// For a value of each warp, of up to 32 bytes.
inline double *memory_of_warps() {
  __shared__ double memory[32 * 4];
  return memory;
}

// What `combine` makes of the values of all threads, in every thread, in one order for all.
template <class V, class F> inline V reduce(V value, F combine) {
  V *of_warps = reinterpret_cast<V *>(memory_of_warps());
  value = reduce_lanes(value, combine);
  __syncthreads();  // the last result was read
  if (rank() % 32 == 0) of_warps[rank() / 32] = value;
  __syncthreads();
  value = of_warps[0];
  for (int w = 1; w < n_threads() / 32; w++) value = combine(value, of_warps[w]);
  return value;
}

// What the first thread has, in every thread. Between two calls all threads meet somewhere else.
template <class V> inline V from_first(V value) {
  __shared__ double memory[2];
  V *shared = reinterpret_cast<V *>(memory);
  if (rank() == 0) *shared = value;
  __syncthreads();
  return *shared;
}

struct Sum {
  template <class V> V operator()(V a, V b) const { return a + b; }
};
struct Largest {
  template <class V> V operator()(V a, V b) const { return a > b ? a : b; }
};
template <class V> inline V sum_of(V value) { return reduce(value, Sum{}); }

}  // namespace lsgp
