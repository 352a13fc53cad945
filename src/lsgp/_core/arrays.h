// SPDX-License-Identifier: BSD-3-Clause
// What all bindings share: arrays of NumPy, checks of their sizes, and how functions are bound.
// nanobind refuses wrong dtypes, numbers of dimensions and strides (TypeError); sizes that contradict
// each other are refused by `require` (ValueError).
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

namespace lsgp {

namespace nb = nanobind;

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using MaybeIn = std::optional<In<T, N>>;
template <class T, int N> using MaybeOut = std::optional<Out<T, N>>;

inline void require(bool fact, const char *message) {
  if (!fact) throw std::invalid_argument(message);
}

template <class A, class... Sizes> bool has_shape(const A &array, Sizes... sizes) {
  size_t axis = 0;
  return ((int64_t(array.shape(axis++)) == int64_t(sizes)) && ...);
}

// Says what shape it should have: of what sizes, in words.
template <class A, class... Sizes>
void require_shape(const A &array, const char *name, const char *shape, Sizes... sizes) {
  if (!has_shape(array, sizes...))
    throw std::invalid_argument(std::string(name) + " must have shape " + shape);
}

template <class A> auto pointer_of(const std::optional<A> &array) {
  return array ? array->data() : nullptr;
}

// Numbers may be converted. Arrays never: a copy of an input costs time, and results in a copy of an
// output are lost.
template <class T> struct MayConvert : std::is_arithmetic<T> {};

template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};

template <class T> constexpr auto argument() {
  if constexpr (MayConvert<T>::value)
    return nb::arg();
  else if constexpr (IsOptional<T>::value)
    return nb::arg().noconvert().none();
  else
    return nb::arg().noconvert();
}

// Binds a function under a name; arguments are taken by their places.
template <class Result, class... Arguments>
void define(nb::module_ &m, const char *name, Result (*function)(Arguments...)) {
  m.def(name, function, argument<Arguments>()...);
}

}  // namespace lsgp
