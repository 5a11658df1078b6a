#include "diagnosis/causes/long_sequences/long_sequences.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_long_sequences(std::span<const Cause* const> causes, const TellContext& context) {
  Args args = context.args(*causes.front());
  if (!causes.front()->or_else.empty()) args.set("same", std::to_string(causes.front()->or_else.front().first));
  Telling telling = say_cause("sequence.long", "sequence.long", std::move(args));
  telling.key = "sequences";
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
