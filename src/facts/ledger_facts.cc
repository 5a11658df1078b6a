#include "facts/ledger_facts.h"

namespace stageline {
namespace {

struct LedgerFact {
  using Value = LedgerOfRun;
  static Value make(const Run& run) {
    Result<TorchRun> torch = make_torch_run(run.trace(), {.include_last_step = true});
    if (!torch) return {};
    LedgerOfRun out{std::move(*torch), {}};
    out.ledger = make_ledger(out.torch);
    return out;
  }
};

}  // namespace

const LedgerOfRun& ledger_of(const Run& run) { return run.fact<LedgerFact>(); }

}  // namespace stageline
