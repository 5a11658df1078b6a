#include "server/http/api_answer.h"

#include "base/json_writer.h"

namespace stageline {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage: return 400;
    case ErrorCode::kLimit: return 413;
    case ErrorCode::kNotFound:
    case ErrorCode::kUnavailable: return 404;
    default: return 500;
  }
}

}  // namespace

ApiAnswer error_answer(int status, std::string_view what, std::string_view hint) {
  JsonWriter json;
  json.begin_object().field("error", what).field("hint", hint).end_object();
  return ApiAnswer{.status = status, .body = json.take()};
}

ApiAnswer refused_answer(const Error& error) { return error_answer(status_of(error.code), error.what, error.hint); }

ApiAnswer asset_answer(std::string_view text, const char* type, std::string_view hash) {
  return {.type = type, .body = std::string(text), .etag = "\"" + std::string(hash) + "\""};
}

std::string unanswered_json(const Error& error) {
  const std::string where = error.where.text(), what = where.empty() ? error.what : where + ": " + error.what;
  JsonWriter json;
  json.begin_object().field("error", valid_utf8(what)).field("hint", valid_utf8(error.hint));
  json.key("sentences").begin_array();
  if (!error.what_zh.empty())
    json.begin_array().value(what).value((where.empty() ? "" : where + ": ") + error.what_zh).end_array();
  json.end_array().end_object();
  return json.take();
}

ApiAnswer stated_answer(const Error& error) {
  ApiAnswer answer = refused_answer(error);
  answer.body = unanswered_json(error);
  return answer;
}

}  // namespace stageline
