// export_trace() for every kind of output: those that exporters write, and the page, which the viewer writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace stageline {

// The same as export_trace(); `inputs` is what the user typed to name the run.
Status export_run(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                  std::string_view to, const ExportOptions& options, const std::vector<std::string>& inputs,
                  std::vector<std::string>* written = nullptr);

}  // namespace stageline
