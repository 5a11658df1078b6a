#include "diagnosis/causes/blocking_sends/blocking_sends.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_blocking_sends(std::span<const Cause* const> causes, const Told& told) {
  const Cause& c = *causes.front();
  Args args = told.args(c);
  args.set("ranks", grouped(c.own.as<BlockingSendsOwn>().ranks));
  Telling said = say_cause("sends.blocking", "sends.blocking", args);
  said.key = "blocking";
  said.table = {"theory", "late-reasons"};
  return said;
}

}  // namespace stageline
