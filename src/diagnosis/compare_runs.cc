#include "diagnosis/compare_runs.h"

#include "diagnosis/explain.h"
#include "diagnosis/profile/profile_diff.h"

namespace stageline {

Result<RunDiff> compare_runs(const Run& a, const Run& b, DiffItemsBy by) {
  const bool cells = a.trace().cells.size() > 0 && b.trace().cells.size() > 0, chosen = by != DiffItemsBy::kOperator;
  const bool profiles = is_profile(a.trace()) && is_profile(b.trace());
  if (profiles && (chosen || !cells)) return diff_profiles(a, b, by);
  if (chosen)
    return make_error(ErrorCode::kUsage, "--by is for two profiles: these runs have no kernels", "leave it out");
  return diff_runs(a.trace(), b.trace());
}

}  // namespace stageline
