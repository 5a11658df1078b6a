// Charts and tables one below the other: one HTML file that needs nothing else, not even a network.
#pragma once

#include <string>

#include "exporters/exporter.h"

namespace stageline {

struct HtmlLimits {
  size_t cells = 1'000'000;      // above: whole steps from the first on, and the page says so
  size_t table_rows = 2000;      // above: the first rows, and the page says how to get all
  size_t series_rows = 100'000;  // of tables NAME-over-time, which charts are drawn from
};

// The whole page. Same input, same bytes.
std::string html_report(const ExportInput& input, const HtmlLimits& limits = {});

}  // namespace stageline
