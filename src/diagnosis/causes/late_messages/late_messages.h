// Late messages: in some steps a message of a link takes far longer than its others, as with lost packets.
#pragma once

#include "diagnosis/causes/cause_kind.h"

namespace stageline {

Telling tell_late_messages(std::span<const Cause* const> causes, const TellContext& context);

}  // namespace stageline
