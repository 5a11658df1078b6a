#include "diagnosis/causes/long_sequences/long_sequences.h"
#include "diagnosis/causes/telling.h"

namespace stageline {

Telling tell_long_sequences(std::span<const Cause* const> causes, const Told& told) {
  Telling said = say_cause("sequence.long", "sequence.long", told.args(*causes.front()));
  said.key = "sequences";
  said.table = {"stragglers", "forward-backward"};
  return said;
}

}  // namespace stageline
