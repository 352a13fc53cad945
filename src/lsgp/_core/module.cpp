// SPDX-License-Identifier: BSD-3-Clause
// The native core as a Python module. This file is compiled once per instruction set, into
// modules of its own (_core/avx512, avx2, baseline); _core/__init__.py chooses one at import.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace nb = nanobind;

void bind_boosted(nb::module_ &m);
void bind_pairs(nb::module_ &m);
void bind_solve(nb::module_ &m);
void bind_tree(nb::module_ &m);

namespace {

#if defined(__x86_64__)
// The parts of the processor state that the operating system saves: bits of XCR0.
unsigned saved_state() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool all_set(unsigned word, unsigned bits) { return (word & bits) == bits; }

// The features of the levels x86-64-v3 and x86-64-v4, asked from the processor itself:
// __builtin_cpu_supports does not link under clang-cl, and older compilers know fewer names.
std::vector<std::string> runnable() {
  std::vector<std::string> names = {"baseline"};
  unsigned a, b, c1, d, b7, c7, c81;
  if (!__get_cpuid(1, &a, &b, &c1, &d)) return names;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return names;
  if (!__get_cpuid(0x80000001, &a, &b, &c81, &d)) return names;

  const unsigned ymm = 0x6, zmm = 0xe6;
  const unsigned lzcnt = 1u << 5;  // some compilers' cpuid.h call it bit_LZCNT, others bit_ABM
  if (!all_set(c1, bit_OSXSAVE) || !all_set(saved_state(), ymm)) return names;
  if (!all_set(c1, bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_POPCNT)) return names;
  if (!all_set(b7, bit_AVX2 | bit_BMI | bit_BMI2) || !all_set(c81, lzcnt)) return names;
  names.push_back("avx2");

  if (!all_set(saved_state(), zmm)) return names;
  if (!all_set(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL))
    return names;
  names.push_back("avx512");
  return names;
}
#else
std::vector<std::string> runnable() { return {"baseline"}; }
#endif

}  // namespace

NB_MODULE(LSGP_MODULE_NAME, m) {
  m.def("supported_instruction_sets", &runnable,
        "The instruction sets that this processor and operating system can run, built or not.");
  m.attr("vector_bytes") = LSGP_VECTOR_BYTES;
  bind_boosted(m);
  bind_pairs(m);
  bind_solve(m);
  bind_tree(m);
}
