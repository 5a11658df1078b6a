// An array with one element for each value of an enum, which is its subscript: the value of another enum does not
// compile.
#pragma once

#include <array>
#include <cstddef>

namespace stageline {

// Values of Enum are 0 … N − 1. A loop over all of them may count.
template <class Enum, class T, size_t N>
struct ByEnum : std::array<T, N> {
  using std::array<T, N>::operator[];
  constexpr T& operator[](Enum value) { return (*this)[static_cast<size_t>(value)]; }
  constexpr const T& operator[](Enum value) const { return (*this)[static_cast<size_t>(value)]; }
};

}  // namespace stageline
