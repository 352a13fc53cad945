// SPDX-License-Identifier: BSD-3-Clause
// What the kernels for any problem begin with: a block of threads solves one query after another.
// T is the dtype. LSGP_VECTORS_SHARED and LSGP_MATRIX_SHARED say which part of the workspace is in
// shared memory, at compile time, so that the compiler knows which kind of memory it reads. The other
// parts are `scratch`, n_scratch elements for each block, vectors first.
#pragma once

#define LSGP_WORKSPACE(n_solutions, gradient)                                                     \
  LSGP_SHARED_MEMORY;                                                                             \
  T *of_block = reinterpret_cast<T *>(lsgp_memory);                                               \
  T *vectors = LSGP_VECTORS_SHARED ? of_block : scratch + blockIdx.x * n_scratch;                 \
  T *matrix = LSGP_MATRIX_SHARED ? of_block + n_vectors                                           \
                                 : scratch + blockIdx.x * n_scratch +                             \
                                       (LSGP_VECTORS_SHARED ? 0 : n_vectors);                     \
  const lsgp::Problem<T> problem = LSGP_PROBLEM(T);                                               \
  lsgp::Workspace<T> space(vectors, matrix, m, d, t, problem.n_apart(), n_solutions, gradient)

typedef LSGP_DTYPE T;
