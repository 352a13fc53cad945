// SPDX-License-Identifier: BSD-3-Clause
// The solutions alpha and beta of local systems themselves [E3], which predictions do without and
// derivatives need.
#pragma once

#include "local_solve.h"

namespace lsgp {

template <class T> struct LocalSolution : LocalSolver<T> {
  typedef LocalSolver<T> Base;
  typedef typename Base::V V;
  using Base::problem, Base::space, Base::rows;

  LocalSolution(const Problem<T> &p, V *memory, int m, Kept kept) : Base(p, memory, m, kept) {}

  V *beta() const { return space.solution; }
  V *alpha(int j) const { return space.solution + size_t(1 + j) * rows; }

  // After `solve`: what forward substitution left, through the factor once more.
  void back_substitute() {
    for (int which = 0; which <= problem.t; which++) {
      V *x = space.solution + size_t(which) * rows;
      for (int i = 0; i < rows; i++) x[i] = this->rhs(which, i);
      // [E10] beta with the trend apart; the alphas' part is in the right-hand sides already.
      const V *kappa = space.coefficient;
      for (int p = 0; which == 0 && p < problem.n_apart(); p++)
        for (int i = 0; i < rows; i++) x[i] += kappa[p] * this->rhs(1 + problem.t + p, i);
      solve_transposed(space.A, x);
    }
  }

  V total(const V *x) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += x[i];
    return sum;
  }
  V moment(const V *x, int k) const {
    V sum = {};
    for (int i = 0; i < rows; i++) sum += x[i] * space.z[i * problem.d + k];
    return sum;
  }
};

}  // namespace lsgp
