// The ledger of a run's communication, as a fact of a run.
#pragma once

#include "facts/run.h"
#include "profile/ledger.h"

namespace stageline {

struct LedgerOfRun {
  TorchRun torch;
  Ledger ledger;
};
// All steps of the ranks asked for; empty where the trace has no profiler slices. The ledger is made when first asked.
const LedgerOfRun& ledger_of(const Run& run);

}  // namespace stageline
