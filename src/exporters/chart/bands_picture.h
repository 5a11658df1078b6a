// Draws rows of time as a PNG. Each pixel column of a row is filled from below by the shares of its colours. The white
// part is the unused share, at every width of the picture.
#pragma once

#include "model/palette.h"

namespace stageline {

struct BandRow {
  std::string label;
  // For each pixel column, the share of each colour; the shares of one column sum to at most 1.
  std::vector<std::vector<double>> shares;
};

struct Bands {
  std::string title;
  std::string from, to;  // labels under the left and the right end
  std::vector<std::pair<std::string, Rgb>> colours;
  std::vector<BandRow> rows;
  int width = 1200;  // width of the picture; rows are bands_columns() wide
};

int bands_columns(int width);

struct BandsPng {
  std::string bytes;
  int width = 0, height = 0;
};
// Errors: kIo with Cairo's reason.
Result<BandsPng> bands_png(const Bands& bands);

}  // namespace stageline
