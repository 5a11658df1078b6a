#include "diagnosis/causes/blocking_sends/blocking_sends.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_blocking_sends(std::span<const Cause* const> causes, const TellContext& context) {
  const Cause& c = *causes.front();
  Args args = context.args(c);
  args.set("ranks", grouped(c.own.as<BlockingSendsOwn>().ranks));
  Telling telling = say_cause("sends.blocking", "sends.blocking", args);
  telling.key = "blocking";
  telling.table = {"theory", "late-reasons"};
  return telling;
}

}  // namespace stageline
