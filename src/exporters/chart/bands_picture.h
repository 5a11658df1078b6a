// Rows of time as a PNG: each column of pixels of a row is filled from below by the shares of its colours, so that
// white is what nobody used, at any width.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/palette.h"

namespace stageline {

struct BandRow {
  std::string label;
  std::vector<std::vector<double>> shares;  // by column of pixels, by colour; of one column at most 1 in all
};

struct Bands {
  std::string title;
  std::string from, to;  // under the left and the right end
  std::vector<std::pair<std::string, Rgb>> colours;
  std::vector<BandRow> rows;
  int width = 1200;  // of the picture; rows are bands_columns() wide
};

int bands_columns(int width);

struct BandsPng {
  std::string bytes;
  int width = 0, height = 0;
};
// Errors: kIo with Cairo's reason.
Result<BandsPng> bands_png(const Bands& bands);

}  // namespace stageline
