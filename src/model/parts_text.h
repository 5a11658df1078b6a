// Puts the parts of a whole into words.
#pragma once

#include <string>
#include <vector>

#include "base/number.h"
#include "base/words.h"
#include "model/finding.h"

namespace stageline {

// Lists the parts of a whole with their shares, which add up to 100.0 % as printed.
inline Text parts_text(const std::vector<SpanPart>& parts) {
  std::vector<double> shares;
  for (const SpanPart& part : parts) shares.push_back(part.share);
  const std::vector<std::string> printed = percents(shares);
  std::vector<Text> texts;
  for (size_t p = 0; p < parts.size(); ++p)
    texts.push_back(words("part.share", Args().set("label", parts[p].label).set("share", printed[p])));
  return joined(texts, words("list.comma"));
}

}  // namespace stageline
