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

namespace lsgp {

constexpr unsigned ALL_LANES = 0xffffffffu;

inline int rank() { return int(threadIdx.x); }
inline int n_threads() { return int(blockDim.x); }
inline int lane_width() { return 32; }

template <class V> inline V from_lane(V value, int lane) {
  return __shfl_sync(ALL_LANES, value, lane);
}

template <class V, class F> inline V reduce_lanes(V value, F combine) {
  for (int o = 16; o; o >>= 1) value = combine(value, __shfl_xor_sync(ALL_LANES, value, o));
  return value;
}

// What `combine` makes of the values of all threads, in every thread, in one order for all.
template <class V, class F> inline V reduce(V value, F combine) {
  __shared__ double memory[32];
  V *of_warps = reinterpret_cast<V *>(memory);
  value = reduce_lanes(value, combine);
  __syncthreads();  // the last result was read
  if (rank() % 32 == 0) of_warps[rank() / 32] = value;
  __syncthreads();
  value = of_warps[0];
  for (int w = 1; w < n_threads() / 32; w++) value = combine(value, of_warps[w]);
  return value;
}

struct Sum {
  template <class V> V operator()(V a, V b) const { return a + b; }
};
struct Largest {
  template <class V> V operator()(V a, V b) const { return a > b ? a : b; }
};
struct Least {
  template <class V> V operator()(V a, V b) const { return a < b ? a : b; }
};
template <class V> inline V sum_of(V value) { return reduce(value, Sum{}); }

}  // namespace lsgp
