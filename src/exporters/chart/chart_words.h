// Holds the words of a chart in the two languages, English and Chinese.
#pragma once

#include <cstdint>
#include <string>

#include "base/words.h"
#include "model/kind.h"
#include "model/trace.h"

namespace stageline {

enum class ChartLang : uint8_t { kEnglish, kChinese };
ChartLang chart_lang(const std::string& name);  // "zh…" is Chinese, everything else English

// Returns the sentence "chart.NAME" of words.json.
std::string chart_word(ChartLang lang, std::string_view name, const Args& args = {});
// Returns the name of something with a number: "Stage 0", "rank 0", "chunk 1", "Step 3".
std::string chart_number(ChartLang lang, std::string_view name, int32_t number);
// Returns a count with its noun: "4 stages", "1 rank".
std::string chart_count(ChartLang lang, std::string_view name, int64_t count);
// Returns "Replica 0", or "Pipeline 0" for runs with context parallelism.
std::string chart_replica(ChartLang lang, const Trace& trace, int32_t dp);
std::string chart_kind(ChartLang lang, CellKind kind);  // for the legend, where all messages are "message"
std::string chart_ghost(ChartLang lang, const std::string& schedule);  // "1f1b in theory: mean times, no latency"
// Returns "Pipeline of step 3" or "Pipeline, steps 0–31"; "Pipeline" when first_step is kUnknown.
std::string chart_title(ChartLang lang, int32_t first_step, int32_t last_step);
std::string chart_clocks_aligned(ChartLang lang, const ClockSummary& clocks);

}  // namespace stageline
