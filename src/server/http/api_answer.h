// One answer of the viewer's API, before it is sent.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct ApiAnswer {
  int status = 200;
  std::string type = "application/json; charset=utf-8";
  std::string body;
  std::string etag;  // of assets, which never change while the program runs
};

// Returns {"error": …, "hint": …}.
ApiAnswer error_answer(int status, std::string_view what, std::string_view hint);
ApiAnswer refused_answer(const Error& error);  // the same, with the status that suits the error

// Returns a file of the page; its ETag is the hash of its text.
ApiAnswer asset_answer(std::string_view text, const char* type, std::string_view hash);

// The answer to a proper question that a run cannot answer: {error, hint, sentences: [[English, Chinese]]}.
std::string unanswered_json(const Error& error);
// Returns the same as an answer, with the status that suits the error.
ApiAnswer stated_answer(const Error& error);

}  // namespace stageline
