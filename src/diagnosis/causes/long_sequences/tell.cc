#include "diagnosis/causes/long_sequences/long_sequences.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_long_sequences(std::span<const Cause* const> causes, const TellContext& context) {
  Telling telling = say_cause("sequence.long", "sequence.long", context.args(*causes.front()));
  telling.key = "sequences";
  telling.table = {"stragglers", "forward-backward"};
  return telling;
}

}  // namespace stageline
