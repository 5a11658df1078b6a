// Finds real inputs next to the checkout and not in it. Tests of them are skipped, with a count, where the folder is
// absent.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "unit/source_dir.h"

// Path of `rel` below ../shared/data, or "" (said once per call) when it is not there.
inline std::string shared_data(const std::string& rel) {
  static int skipped = 0;
  const std::string path = source_dir() + "/../shared/data/" + rel;
  // A worktree lies one level deeper than the checkout it belongs to.
  const std::string deeper = source_dir() + "/../../shared/data/" + rel;
  if (std::filesystem::exists(path)) return path;
  if (std::filesystem::exists(deeper)) return deeper;
  ++skipped;
  MESSAGE("skipped: needs ../shared (" << rel << "; " << skipped << " so far)");
  return {};
}
