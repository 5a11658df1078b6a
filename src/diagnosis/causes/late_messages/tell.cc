#include "diagnosis/causes/late_messages/late_messages.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_late_messages(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  const bool guessed = !c.or_else.empty();
  Telling telling = say_cause("message.tail", "message.tail", args.flag("guessed", guessed));
  if (guessed) telling.title = words("message.tail.guessed.title", args);
  telling.rank = c.figures.rank;
  telling.table = {"links", ""};
  return telling;
}

}  // namespace stageline
