#include "server/api_answer.h"

#include "base/json_writer.h"

namespace stageline {

ApiAnswer error_answer(int status, std::string_view what, std::string_view hint) {
  JsonWriter json;
  json.begin_object().field("error", what).field("hint", hint).end_object();
  ApiAnswer answer;
  answer.status = status;
  answer.body = json.take();
  return answer;
}

ApiAnswer asset_answer(std::string_view text, const char* type, std::string_view hash) {
  ApiAnswer answer;
  answer.type = type;
  answer.body = text;
  answer.etag = "\"" + std::string(hash) + "\"";
  return answer;
}

}  // namespace stageline
