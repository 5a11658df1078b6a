#include "diagnosis/causes/late_messages/late_messages.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_late_messages(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  Args args = told.args(c);
  const bool guessed = !c.or_else.empty();
  Telling said = say_cause("message.tail", "message.tail", args.flag("guessed", guessed));
  if (guessed) said.title = words("message.tail.guessed.title", args);
  said.rank = c.figures.rank;
  said.table = {"links", ""};
  return said;
}

}  // namespace stageline
