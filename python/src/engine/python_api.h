// The part of CPython that every file of the module needs: the limited API of 3.9, references that release themselves,
// and errors of the program as exceptions.
#pragma once

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stageline::python {

// An owned reference; null after an error, as CPython's own functions return it.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }
  static Ref borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

// Text of the program is UTF-8 wherever it is valid; bytes that are not (names of files) come as Python's own
// surrogates, so that they name the same file again.
PyObject* text(std::string_view utf8);
// Returns false with an exception set if `object` is neither a text nor a path.
bool take_text(PyObject* object, std::string& out);
bool take_texts(PyObject* sequence, std::vector<std::string>& out);
PyObject* text_list(const std::vector<std::string>& texts);

// The exceptions, made once: stageline.Error and one for each ErrorCode. False with an exception set.
bool make_exceptions(PyObject* module);
// Returns a message in Python's terms, as stageline._words.in_python() has it.
PyObject* in_python(std::string_view words);

// Sets the exception of `error` with its attributes what, where, hint and code; returns null for callers to return.
PyObject* raise(const Error& error);
// Sets stageline.InternalError: a fault of ours.
PyObject* raise_internal(const std::string& what);

}  // namespace stageline::python
