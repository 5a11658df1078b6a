// The words of a chart in the languages we speak.
#pragma once

#include <cstdint>
#include <string>

#include "base/words.h"
#include "model/kind.h"
#include "model/trace.h"

namespace stageline {

enum class ChartLang : uint8_t { kEnglish, kChinese };
ChartLang chart_lang(const std::string& name);  // "zh…" is Chinese, everything else English

// The sentence "chart.NAME" of src/words.json.
std::string chart_word(ChartLang lang, std::string_view name, const Args& args = {});
// "Stage 0", "rank 0", "chunk 1", "Step 3": what carries a number.
std::string chart_number(ChartLang lang, std::string_view name, int32_t number);
// "4 stages", "1 rank": how many there are.
std::string chart_count(ChartLang lang, std::string_view name, int64_t count);
// "Replica 0"; with context parallelism "Pipeline 0".
std::string chart_replica(ChartLang lang, const Trace& trace, int32_t dp);
std::string chart_kind(ChartLang lang, CellKind kind);                 // for the legend; all messages are "message"
std::string chart_ghost(ChartLang lang, const std::string& schedule);  // "1f1b in theory: mean times, no latency"
// "Pipeline of step 3", "Pipeline, steps 0–31", "Pipeline" when first is kUnknown.
std::string chart_title(ChartLang lang, int32_t first_step, int32_t last_step);
std::string chart_clocks_aligned(ChartLang lang, const ClockSummary& clocks);

}  // namespace stageline
