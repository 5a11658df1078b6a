#include "server/http/stated_error.h"

#include "base/json_writer.h"
#include "base/text.h"

namespace stageline {

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
