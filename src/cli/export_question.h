// Reads from flags what is asked of an exporter. `stageline export` and the Python package share it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/run_common.h"
#include "exporters/exporter.h"

namespace stageline {

struct ExportQuestion {
  const Exporter* exporter = nullptr;  // chosen by --to, else by the extension of --output
  ExportOptions options;
  Clocks clocks = Clocks::kRaw;  // how the run is to be opened for this exporter
};
// The output's title names the operands, unless --title gives another. Errors: kUsage.
Result<ExportQuestion> export_question(const Arguments& arguments, const std::string& lang);

}  // namespace stageline
