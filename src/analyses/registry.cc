#include "analyses/analysis.h"
#include "base/word_files.h"
#include "profile/torch_view.h"

namespace stageline {

#define ANALYSIS(id, ...) Result<AnalysisResult> run_##id(const AnalysisInput& input);
#include "analyses/analyses.def"

const std::vector<const Analysis*>& analyses() {
  static std::vector<Analysis> named;
  static const auto all = [] {
    std::map<std::string_view, std::string> summaries;
    for_each_declared("answers", [&](std::string_view name, const simdjson::dom::element& own) {
      summaries.emplace(name, declared_text(own, "summary"));
    });
    using enum AnalysisNeeds;
    const auto add = [&](std::string_view id, Analysis analysis) {
      analysis.name = dashed(id);
      analysis.summary = summaries[analysis.name];
      named.push_back(std::move(analysis));
    };
#define ANALYSIS(id, ...) add(#id, {.run = run_##id __VA_OPT__(, ) __VA_ARGS__});
#include "analyses/analyses.def"
    return mapped<const Analysis*>(named, [&](const Analysis& analysis) { return &analysis; });
  }();
  return all;
}

AnalysisResult answer_of(const TorchRun& run) {
  AnalysisResult answer;
  note_last_step(run, answer.notes);
  return answer;
}

const Analysis* find_analysis(std::string_view name) {
  for (const Analysis* analysis : analyses())
    if (analysis->name == dashed(name)) return analysis;
  return nullptr;
}

const std::vector<AnalysisOption>& Analysis::options() const {
  static const auto declared = [] {
    std::map<std::string, std::vector<AnalysisOption>, std::less<>> all;
    for_each_declared("options", [&](std::string_view analysis, const simdjson::dom::element& own) {
      for (const auto& [option, from] : simdjson::dom::object(own))
        all[std::string(analysis)].push_back(
            {std::string(option), declared_text(from, 0), declared_text(from, 1), declared_text(from, 2)});
    });
    return all;
  }();
  static const std::vector<AnalysisOption> none;
  const auto at = declared.find(name);
  return at == declared.end() ? none : at->second;
}

const char* needs_text(AnalysisNeeds needs) {
  static constexpr auto kTexts = texts_by<AnalysisNeeds::kFiles, const char*>(
      {"needs pipeline cells, and this trace has none", "needs a profiler trace with slices",
       "needs what devices computed or hosts did, and this trace has none of it",
       "needs requests that a server measured (spans of vLLM or SGLang)", "needs dumps of a flight recorder",
       "needs a profile of XLA", "needs a snapshot of PyTorch's allocator",
       "needs a profile with an execution trace (ExecutionTraceObserver) beside it",
       "needs pipeline cells, a profile whose all-to-alls have splits, or traces of routers",
       "compares two runs, and is not asked of one", "reads files that are no traces"});
  return kTexts[needs];
}

const char* needs_name(AnalysisNeeds needs) {
  static constexpr auto kTexts = texts_by<AnalysisNeeds::kFiles, const char*>(
      {"cells", "slices", "slices", "requests", "calls", "xla", "allocator", "nodes", "experts", "two runs", "files"});
  return kTexts[needs];
}

}  // namespace stageline
