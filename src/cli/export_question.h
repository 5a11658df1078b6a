// What is asked of an exporter, from flags: `stageline export` and the Python package ask the same way.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/run_common.h"
#include "exporters/exporter.h"

namespace stageline {

struct ExportQuestion {
  const Exporter* exporter = nullptr;  // by --to, else by the extension of --output
  ExportOptions options;
  Clocks clocks = Clocks::kRaw;  // how the run is to be opened for it
};
// Titles of the output name the operands unless --title does. Errors: kUsage.
Result<ExportQuestion> export_question(const Arguments& arguments, const std::string& lang);

}  // namespace stageline
