// Result<T>: a value, or an Error: the problem, its place, and a remedy. It is used where work cannot continue;
// problems that do not stop the work go to Diagnostics instead.
#pragma once

#include "base/std.h"

namespace stageline {

enum class ErrorCode : uint8_t {
  kUsage,        // the command line asks for something that does not exist
  kNotFound,     // a file, a folder or a fact that was asked for is missing
  kIo,           // the operating system refused to read or write
  kUnknownKind,  // no reader or exporter recognises this
  kAmbiguous,    // several readers claim the input equally
  kBadInput,     // the input is damaged beyond saving
  kLimit,        // a documented limit was exceeded
  kUnavailable,  // this build or machine lacks something
};

// A place in an input. `line` counts from 1, and 0 means unknown; `byte` counts from 0, and -1 means unknown.
struct Where {
  std::string file;
  int64_t line = 0;
  int64_t byte = -1;

  std::string text() const;  // "workerlog.3:17", "trace.json, byte 311", "workerlog.3"
};

struct Error {
  ErrorCode code = ErrorCode::kBadInput;
  std::string what;
  Where where;
  std::string hint;
  // Of errors whose sentence is in words.json (base/error_words.h): `what` in Chinese, and the sentence's name.
  std::string what_zh = {};
  std::string_view name = {};

  // Returns one to three lines for a terminal, without a trailing newline: "where: what\n hint: ..."
  std::string text() const;
};

inline Error make_error(ErrorCode code, std::string what, std::string hint = {}, Where where = {}) {
  return {code, std::move(what), std::move(where), std::move(hint)};
}

template <class T> class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & {
    assert(*this);
    return std::get<0>(state_);
  }
  const T& operator*() const& {
    assert(*this);
    return std::get<0>(state_);
  }
  T&& operator*() && {
    assert(*this);
    return std::get<0>(std::move(state_));
  }
  T* operator->() {
    assert(*this);
    return &std::get<0>(state_);
  }
  const T* operator->() const {
    assert(*this);
    return &std::get<0>(state_);
  }
  Error& error() & {
    assert(!*this);
    return std::get<1>(state_);
  }
  const Error& error() const& {
    assert(!*this);
    return std::get<1>(state_);
  }
  Error&& error() && {
    assert(!*this);
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

// The result of work that gives nothing but success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  explicit operator bool() const { return !error_; }
  Error& error() & {
    assert(error_);
    return *error_;
  }
  const Error& error() const& {
    assert(error_);
    return *error_;
  }
  Error&& error() && {
    assert(error_);
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

// Makes `name` of a Result, or returns its error from the function:
//
//     TRY(rows, read_rows(path));  // the value is *rows
#define TRY(name, ...)       \
  auto name = (__VA_ARGS__); \
  if (!(name)) return std::move(name).error()

// Returns the error of a Status from the function, as in TRY_OK(file.commit()).
#define TRY_OK(...)                                                                           \
  do {                                                                                        \
    if (Status try_status = (__VA_ARGS__); !try_status) return std::move(try_status).error(); \
  } while (false)

// Moves the value into `into`, or returns the error.
template <class T, class U> Status take(Result<T> result, U& into) {
  if (!result) return std::move(result).error();
  into = std::move(*result);
  return {};
}

}  // namespace stageline
