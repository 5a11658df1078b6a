// Finds where names occur: how often, and the next occurrence from any time on, without a list of all occurrences. For
// every kNameBlock slices of a lane a few bits record which names may occur there (at most 1/8 byte per slice). Only
// blocks that they do not exclude are read.
#pragma once

#include "server/timeline/view_lane.h"

namespace stageline {

// The conditions of a search on a slice besides its name, for example "mb:3 kind:B step:2 gemm".
//
//   mb (micro_batch), chunk, step     of cells, and of slices whose range says so; step of every slice that has one
//   stage, rank, dp                   of the rank
//   kind                              a kind's code or name, in either case: B, comm, operator
//
// Words are separated by spaces, and all of them must hold. Words of no such form make the text that names are searched
// for.
struct Facets {
  std::optional<int64_t> micro_batch, chunk, step, stage, rank, dp;
  uint32_t kinds = UINT32_MAX;  // one bit for each kind
  bool any() const { return micro_batch || chunk || step || stage || rank || dp || kinds != UINT32_MAX; }
};

struct FacetText {
  Facets facets;
  std::string rest, written;
};
// Takes the facets out of a text: `rest` is what is left, `written` the facets as they were written. A word in double
// quotes is text, whatever it looks like. Errors: kUsage for a wrong number or kind.
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

inline constexpr size_t kNameBlock = 4096;

// A set of names, by id.
class NameSet {
 public:
  explicit NameSet(size_t name_count) : has_(name_count, 0) {}
  void add(StringId name) {
    if (name < has_.size()) has_[name] = 1;
  }
  bool has(StringId name) const { return has_[name] != 0; }
  size_t size() const { return has_.size(); }

 private:
  std::vector<uint8_t> has_;
};

class NameIndex {
 public:
  // O(slices), parallel over lanes.
  NameIndex(const std::vector<ViewLane>& lanes, size_t name_count);

  uint64_t count(StringId name) const { return counts_[name]; }

  // A position in the order of (start, lane, slice); −1 for lane or slice comes before all others of that time.
  struct Cursor {
    int64_t start_ns = 0, lane = -1, slice = -1;
  };
  // The first slice with one of these names after the cursor in lanes `chosen` (ascending), or the last one before it.
  // Blocks that may have one are scanned, in each lane up to the best place found so far. The slice must also pass
  // `also`, unless it is nullptr.
  SlicePlace next(const std::vector<ViewLane>& lanes, const std::vector<uint32_t>& chosen, const NameSet& names,
                  Cursor from, const FacetTest* also = nullptr) const;
  SlicePlace previous(const std::vector<ViewLane>& lanes, const std::vector<uint32_t>& chosen, const NameSet& names,
                      Cursor from, const FacetTest* also = nullptr) const;

  // Calls visit(slice) for the slices [from, to) of a lane that bear one of the names, in order.
  template <class Visit>
  void for_named(const ViewLane& lane, size_t lane_id, const NameSet& names, const std::vector<uint64_t>& mask,
                 size_t from, size_t to, Visit visit) const {
    for (size_t i = from; i < to;) {
      const size_t end = std::min(to, (i / kNameBlock + 1) * kNameBlock);
      if (may_hold(lane_id, i / kNameBlock, mask))
        for (; i < end; ++i)
          if (names.has(lane.names[i])) visit(i);
      i = end;
    }
  }
  // The bits of a set of names, which for_named() takes.
  std::vector<uint64_t> mask_of(const NameSet& names) const;

 private:
  bool may_hold(size_t lane, size_t block, const std::vector<uint64_t>& mask) const;

  size_t words_ = 1;                // words of 64 bits in one block
  std::vector<uint64_t> counts_;    // for each name
  std::vector<size_t> lane_begin_;  // first block of each lane
  std::vector<uint64_t> bits_;      // [block · words_ …]
};

}  // namespace stageline
