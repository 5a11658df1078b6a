// The page of a report runs what-if as WebAssembly from the program's own sources, so that a slider there gives the
// results of `stageline what-if`. The page writes bytes into room(), opens them once as a model, and asks it with the
// targets that it would send to a server (docs/viewer-protocol.md). It reaches nothing: no file, no clock, no network.
#include "diagnosis/what_if/packed_model.h"
#include "server/http/api_answer.h"
#include "server/pipeline/what_if_reply.h"

namespace stageline {
namespace {

std::string room;
std::optional<RestoredModel> opened;
std::string answer;

}  // namespace

extern "C" {

// Where the page writes what it hands over next; valid until the next call.
[[clang::export_name("room")]] char* stageline_room(uint32_t bytes) {
  room.resize(bytes);
  return room.data();
}

// 1: the room held a whole model.
[[clang::export_name("open")]] int32_t stageline_open() {
  opened = restored_model(room);
  room = {};
  if (opened) opened->asked.model = &opened->model;
  return opened ? 1 : 0;
}

// The answer to the target in the room: its status as the server has it. answer() and answer_bytes() say where it lies,
// until the next question.
[[clang::export_name("ask")]] int32_t stageline_ask() {
  const Result<Query> query = parse_target(room);
  Result<std::string> reply = query ? what_if_reply(opened->asked, *query) : Result<std::string>(query.error());
  if (!reply) {
    ApiAnswer refused = refused_answer(reply.error());
    answer = std::move(refused.body);
    return refused.status;
  }
  answer = std::move(*reply);
  return 200;
}
[[clang::export_name("answer")]] const char* stageline_answer() { return answer.data(); }
[[clang::export_name("answer_bytes")]] uint32_t stageline_answer_bytes() {
  return static_cast<uint32_t>(answer.size());
}

}  // extern "C"
}  // namespace stageline
