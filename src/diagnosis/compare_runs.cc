#include "diagnosis/compare_runs.h"

#include "diagnosis/diff/diff_answer.h"
#include "diagnosis/merge_findings.h"
#include "diagnosis/profile/profile_diff.h"

namespace stageline {

Result<RunDiff> compare_runs(const Run& a, const Run& b) {
  const bool cells = a.trace().cells.size() > 0 && b.trace().cells.size() > 0;
  if (!cells && is_profile(a.trace()) && is_profile(b.trace())) return diff_profiles(a, b);
  return diff_runs(a.trace(), b.trace());
}

}  // namespace stageline
