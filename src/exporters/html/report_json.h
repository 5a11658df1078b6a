// Everything in a report but the cells, as one JSON text: identity, ranks, headline, findings,
// tables, flaws, names and colours. web/src/data/report.ts declares the same shape.
#pragma once

#include <string>

#include "exporters/exporter.h"
#include "exporters/html/html.h"
#include "exporters/html/payload.h"

namespace stageline {

// Tables longer than `limits` allow are cut and carry their true row count.
std::string report_json(const ExportInput& input, const CellPayload& payload, const HtmlLimits& limits);

}  // namespace stageline
