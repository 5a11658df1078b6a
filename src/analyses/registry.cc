#include "analyses/analysis.h"
#include "base/text.h"

namespace stageline {

#define ANALYSIS(id) extern const Analysis id##_analysis;
#include "analyses/analyses.def"
#undef ANALYSIS

const std::vector<const Analysis*>& analyses() {
  static const std::vector<const Analysis*> all = {
#define ANALYSIS(id) &id##_analysis,
#include "analyses/analyses.def"
#undef ANALYSIS
  };
  return all;
}

const Analysis* find_analysis(std::string_view name) {
  for (const Analysis* analysis : analyses())
    if (analysis->name == dashed(name)) return analysis;
  return nullptr;
}

}  // namespace stageline
