// The words of a chart in the languages we speak.
#pragma once

#include <cstdint>
#include <string>

#include "model/kind.h"
#include "model/trace.h"

namespace stageline {

enum class ChartLang : uint8_t { kEnglish, kChinese };
ChartLang chart_lang(const std::string& name);  // "zh…" is Chinese, everything else English

std::string word_stage(ChartLang lang, int32_t stage);  // "Stage 0", "第 0 级"
std::string word_rank(ChartLang lang, int32_t rank);    // "rank 0"; the field says it so in Chinese too
// "Replica 0", "副本 0"; with context parallelism "Pipeline 0", "流水线 0"
std::string word_replica(ChartLang lang, const Trace& trace, int32_t dp);
std::string word_step(ChartLang lang, int32_t step);    // "Step 3", "第 3 步"
std::string word_chunk(ChartLang lang, int32_t chunk);  // "chunk 1", "分块 1"
std::string word_kind(ChartLang lang, CellKind kind);   // for the legend; all messages are "message"
std::string word_waiting(ChartLang lang);
std::string word_ghost(ChartLang lang, const std::string& schedule);  // "1f1b in theory: mean times, no latency"
std::string word_theory_end(ChartLang lang);
std::string word_phase(ChartLang lang, int phase);  // 0 warm-up, 1 steady, 2 cool-down
std::string word_phase_mark(ChartLang lang);
std::string word_chunk_hint(ChartLang lang);  // explains "3·1"

// "Pipeline of step 3", "Pipeline, steps 0–31", "Pipeline" when first is kUnknown.
std::string word_title(ChartLang lang, int32_t first_step, int32_t last_step);
std::string count_stages(ChartLang lang, int64_t n);
std::string count_ranks(ChartLang lang, int64_t n);
std::string count_micro_batches(ChartLang lang, int64_t n);
std::string count_chunks(ChartLang lang, int64_t n);
std::string count_steps(ChartLang lang, int64_t n);

// What the picture cannot show about its own time axis.
std::string note_clocks_per_rank(ChartLang lang);
std::string note_clocks_unaligned(ChartLang lang);
std::string note_clocks_aligned(ChartLang lang, const ClockSummary& clocks);
std::string note_steps_laid(ChartLang lang);

}  // namespace stageline
