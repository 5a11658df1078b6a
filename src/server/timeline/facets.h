// The conditions of a search on a slice besides its name, for example "mb:3 kind:B step:2 gemm".
//
//   mb (micro_batch), chunk, step     of cells, and of slices whose range says so; step of every slice that has one
//   stage, rank, dp                   of the rank
//   kind                              a kind's code or name, in either case: B, comm, operator
//
// Words are separated by spaces, and all of them must hold. Words of no such form make the text that names are searched
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/timeline/view_lane.h"

namespace stageline {

struct Facets {
  std::optional<int64_t> micro_batch, chunk, step, stage, rank, dp;
  uint32_t kinds = UINT32_MAX;  // one bit for each kind
  bool any() const { return micro_batch || chunk || step || stage || rank || dp || kinds != UINT32_MAX; }
};

// Takes the facets out of a text: `rest` is what is left, `written` the facets as they were written. A word in double
// quotes is text, whatever it looks like. Errors: kUsage for a wrong number or kind.
struct FacetText {
  Facets facets;
  std::string rest, written;
};
Result<FacetText> split_facets(std::string_view text);

// Tests whether slices have what was asked for. O(log facts) a slice.
class FacetTest {
 public:
  // `trace` and its `lanes` must outlive this.
  FacetTest(const Trace& trace, const std::vector<ViewLane>& lanes, const Facets& facets)
      : trace_(trace), lanes_(lanes), facets_(facets) {}
  bool lane_may(uint32_t lane) const;
  bool has(uint32_t lane, size_t slice) const;

 private:
  const Trace& trace_;
  const std::vector<ViewLane>& lanes_;
  Facets facets_;
};

}  // namespace stageline
