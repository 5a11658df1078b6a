// Replaces functions that the program's sources use and the library for WebAssembly lacks: it has one thread, and its
// from_chars() reads no real numbers. It is included before every source of src/wasm's program (cmake/wasm.cmake).
#pragma once

#include <cstdlib>
#include <mutex>
#include <system_error>

#include "base/vocabulary.h"

namespace std {  // NOLINT(cert-dcl58-cpp): these are its own names, which it leaves out where there is one thread

class mutex {
 public:
  void lock() {}
  void unlock() {}
};

// The locale is "C" there: digits, a point, an exponent.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  char* end = nullptr;
  const bool begins = !text.empty() && (text[0] == '-' || text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
  const double read = begins ? strtod(text.c_str(), &end) : 0;
  if (!begins || end == text.c_str()) return {first, errc::invalid_argument};
  value = read;
  return {first + (end - text.c_str()), errc()};
}

}  // namespace std
