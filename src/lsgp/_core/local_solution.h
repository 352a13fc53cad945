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
    this->coefficients(beta());
    for (int j = 0; j < problem.t; j++) {
      // The part of a trend apart [E10] is in the right-hand sides already.
      for (int i = 0; i < rows; i++) alpha(j)[i] = this->rhs(1 + j, i);
      solve_transposed(space.A, alpha(j));
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
