#include "model/cells.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace stageline;

namespace {

auto fields(const Cell& cell) {
  return std::tuple(cell.step, cell.part, cell.start_ns, cell.slice, -cell.end_ns, cell.kind, cell.chunk,
                    cell.micro_batch);
}

// Rows of `parts` ranks in four steps. `mixed` is how often in a hundred a row trades places with any other.
std::vector<Cell> made_cells(int parts, int mixed, std::mt19937& random) {
  std::vector<Cell> rows;
  for (int32_t part = 0; part < parts; ++part)
    for (int32_t step = 0; step < 4; ++step)
      for (int32_t k = 0; k < 6; ++k) {
        const int64_t start_ns = step * 1000 + k / 2 * 100;  // two of each start
        rows.push_back({step, part, static_cast<CellKind>(k % 3), k % 2, k, start_ns, start_ns + 10 * k,
                        static_cast<uint32_t>(k / 4)});
      }
  for (Cell& row : rows)
    if (static_cast<int>(random() % 100) < mixed) std::swap(row, rows[random() % rows.size()]);
  return rows;
}

}  // namespace

TEST_CASE("sorted cells are in the order that a plain sort of whole rows gives") {
  std::mt19937 random(7);
  for (const int mixed : {0, 1, 10, 100})
    for (const int parts : {1, 3, 17}) {
      CAPTURE(mixed);
      CAPTURE(parts);
      std::vector<Cell> rows = made_cells(parts, mixed, random);
      Cells cells;
      for (const Cell& row : rows) cells.add(row);
      cells.sort();
      std::ranges::stable_sort(rows, {}, [](const Cell& cell) {
        return std::tuple(cell.step, cell.part, cell.start_ns, cell.slice, -cell.end_ns);
      });
      REQUIRE(cells.size() == rows.size());
      for (size_t i = 0; i < rows.size(); ++i) CHECK(fields(cells.at(i)) == fields(rows[i]));
    }
}

TEST_CASE("a copy of cells has every column") {
  std::mt19937 random(8);
  Cells cells;
  for (const Cell& row : made_cells(5, 100, random)) cells.add(row);
  const Cells copy = cells;
  REQUIRE(copy.size() == cells.size());
  for (size_t i = 0; i < cells.size(); ++i) CHECK(fields(copy.at(i)) == fields(cells.at(i)));
}
