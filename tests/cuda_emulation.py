# SPDX-License-Identifier: BSD-3-Clause
"""The sources of the CUDA kernels as plain C++, run by the lanes of one warp, or of several.

Each lane has a stack of its own, and runs from one exchange among them to the next: a warp waits
for its lanes, a block for all. So what they compute is tested without a device. Those that forget
to wait for each other are seen where the order in which they run matters: it can be turned around.
How a device rounds, only a device shows (tests/backends/test_cuda.py).
"""

import ctypes
import os
import shutil
import subprocess

from lsgp.backends.cuda.modules import source_of

COMPILER = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
C_NAMES = {"float32": "float", "float64": "double"}

#: What a device has and a host has not.
SHIM = """
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>
#include <setjmp.h>
#include <ucontext.h>
#define LSGP_EMULATED
#define LSGP_BLOCKS 1
#define LSGP_VECTORS_SHARED true
#define LSGP_MATRIX_SHARED true
#define LSGP_ALONE true
#define LSGP_SHARED_MEMORY static double2 lsgp_memory[1 << 18]
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
struct double2 { double x, y; };
struct Index { unsigned x; };
static Index threadIdx, blockIdx;
static const Index blockDim = {LSGP_THREADS}, gridDim = {1};
static jmp_buf scheduler, lanes[LSGP_THREADS];
static int n_exchanges[LSGP_THREADS];
static bool waits_for_all[LSGP_THREADS];
// In turns, so that the next exchange does not overwrite the last.
static double boxes[2][LSGP_THREADS];

// Until all other lanes of the warp, or of the block, are here too.
static void meet(bool is_for_all) {
  waits_for_all[threadIdx.x] = is_for_all;
  if (_setjmp(lanes[threadIdx.x]) == 0) _longjmp(scheduler, 1);
}
template <class V> static const double *exchange(V value) {
  double *box = boxes[n_exchanges[threadIdx.x]++ % 2];
  std::memcpy(box + threadIdx.x, &value, sizeof(V));
  meet(false);
  return box + threadIdx.x / 32 * 32;
}
template <class V> static V __shfl_sync(unsigned, V value, int lane) {
  const double *box = exchange(value);
  std::memcpy(&value, box + lane % 32, sizeof(V));
  return value;
}
template <class V> static V __shfl_xor_sync(unsigned all, V value, int bits) {
  return __shfl_sync(all, value, int(threadIdx.x) % 32 ^ bits);
}
static unsigned __ballot_sync(unsigned, bool is_true) {
  const double *box = exchange(is_true ? 1.0 : 0.0);
  unsigned bits = 0;
  for (int l = 0; l < 32; l++) bits |= unsigned(box[l] != 0) << l;
  return bits;
}
static bool __any_sync(unsigned all, bool is_true) { return __ballot_sync(all, is_true) != 0; }
static void __syncwarp() { meet(false); }
static void __syncthreads() { meet(true); }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __ffs(unsigned bits) { return __builtin_ffs(int(bits)); }
static int __clz(unsigned bits) { return bits ? __builtin_clz(bits) : 32; }
static unsigned __brev(unsigned bits) {
  unsigned turned = 0;
  for (int l = 0; l < 32; l++) turned |= (bits >> l & 1) << (31 - l);
  return turned;
}
static double __dmul_rn(double a, double b) { volatile double x = a * b; return x; }
static double __dadd_rn(double a, double b) { volatile double x = a + b; return x; }
"""
#: What runs a kernel: all lanes of each block, one block after another.
LAUNCH = """
extern "C" int is_reversed;
int is_reversed = 0;
static ucontext_t beginnings[LSGP_THREADS];
static bool is_begun[LSGP_THREADS], is_done[LSGP_THREADS];
static std::function<void()> body;
static void begin() {
  body();
  is_done[threadIdx.x] = true;
  _longjmp(scheduler, 1);
}
static void run_lane() {
  if (_setjmp(scheduler)) return;
  if (is_begun[threadIdx.x]) _longjmp(lanes[threadIdx.x], 1);
  is_begun[threadIdx.x] = true;
  setcontext(&beginnings[threadIdx.x]);
}
static void run_block() {
  static std::vector<char> stacks(LSGP_THREADS << 18);
  for (int l = 0; l < LSGP_THREADS; l++) {
    is_begun[l] = is_done[l] = waits_for_all[l] = false, n_exchanges[l] = 0;
    getcontext(&beginnings[l]);
    beginnings[l].uc_stack.ss_sp = stacks.data() + (l << 18);
    beginnings[l].uc_stack.ss_size = 1 << 18;
    makecontext(&beginnings[l], begin, 0);
  }
  // Warps run until all of them wait for all, or are done.
  for (bool is_left = true; is_left;) {
    is_left = false;
    for (int turn = 0; turn < LSGP_THREADS; turn += 32) {
      const int first = is_reversed ? LSGP_THREADS - 32 - turn : turn;
      do {
        for (int own = 0; own < 32; own++) {
          const int l = first + (is_reversed ? 31 - own : own);
          if (is_done[l]) continue;
          threadIdx.x = unsigned(l);
          run_lane();
          is_left = is_left || !is_done[l];
        }
      } while (!is_done[first] && !waits_for_all[first]);
    }
  }
}
template <class F> struct Launch;
template <class... A> struct Launch<void (*)(A...)> {
  static void run(long long n_blocks, A... arguments) {
    body = [&] { KERNEL(arguments...); };
    for (long long block = 0; block < n_blocks; block++) {
      blockIdx.x = unsigned(block);
      run_block();
    }
  }
};
extern "C" void *launch;
void *launch = reinterpret_cast<void *>(&Launch<decltype(&KERNEL)>::run);
"""


def compile_kernel(module, kernel, folder, dtype="float64", size=64, n_threads=32):
    """A function that launches a kernel: with the number of blocks, then its arguments."""
    meant = {"DTYPE": C_NAMES[dtype], "M": size, "THREADS": n_threads}
    head = "".join(f"#define LSGP_{name} {value}\n" for name, value in meant.items())
    stem = folder / f"{kernel}_{dtype}_{size}_{n_threads}"
    source, target = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    text = f"{head}#define KERNEL {kernel}\n{SHIM}{source_of(module)}{LAUNCH}"
    source.write_text(text, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Wno-unknown-pragmas"]
    flags += ["-Wno-unused-function", "-Wno-maybe-uninitialized", "-fPIC", "-shared"]
    # Distributions turn on a check that takes a jump to another lane's stack for an attack.
    flags += ["-U_FORTIFY_SOURCE"]
    subprocess.run([COMPILER, *flags, source, "-o", target], check=True)
    library = ctypes.CDLL(str(target))
    launch = ctypes.CFUNCTYPE(None)(ctypes.c_void_p.in_dll(library, "launch").value)
    launch.library = library  # which must live as long
    return launch


def turn_around(launch):
    """Run the lanes of a kernel from the last to the first, or again from the first."""
    is_reversed = ctypes.c_int.in_dll(launch.library, "is_reversed")
    is_reversed.value = 1 - is_reversed.value
