// Why a proper question has no answer, in both languages.
#pragma once

#include <string>

#include "base/result.h"
#include "server/http/api_answer.h"

namespace stageline {

// The answer to a proper question that a run cannot answer: {error, hint, sentences: [[English, Chinese]]}.
std::string unanswered_json(const Error& error);
// The same as an answer, with the status that suits the error.
ApiAnswer stated_answer(const Error& error);

}  // namespace stageline
