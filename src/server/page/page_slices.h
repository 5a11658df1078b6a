// The timeline as a report carries it: columns of varints that deflate well, some 5 bytes a slice after deflate and
// base64.
//
// A varint has 7 bits a byte, the lowest first; signed numbers are zigzag. Lanes come one after another, each in blocks
// of up to kPageBlock slices in the lane's order. A piece holds whole blocks and can be read without the pieces of
// other lanes: it has whole lanes, or some blocks of a single one. The first block of a lane begins with the lane's
// unit, of which all its times are multiples. A block of n slices has these columns:
//
//   starts      (start − end of the slice before) / unit · 2; for a slice that starts before that end,
//               (start − start of the slice before) / unit · 2 + 1
//   durations   / unit
//   places      index into the head's places: pairs of name and kind, the most frequent first
//   flags       one varint: which of these follow
//     1 steps     runs: how many slices, and the signed step number (−1: none)
//     2 facts     a count, then for each slice that has them: distance to the one before, signed micro-batch and chunk
//     4 cells     signed micro-batches, then signed chunks
//     8 partners  lane + 1 of the call that launched device work, of the last device work of a call, or of the slice
//                 that a cell was read from (0: none); then the signed distances of their slices to the one before
//     16 parents  where they are not what the rows say: a count, then for each the distance to the one before, lane + 1
//                 of the parent (0: none) and the signed distance of its slice to the one before
//
// A slice's parent is the slice that encloses it in the rows above; for a slice of a stream it is the first operator
// above its launch.
//
// A counter has starts as distances / unit, then either 0 and the signed distances of its values, or 1 and its values
// as f64.
#pragma once

#include "server/timeline/timeline.h"

namespace stageline {

inline constexpr size_t kPageBlock = 65'536;

// Lanes of a timeline that a page carries.
struct PageLanes {
  std::vector<uint32_t> lanes;      // ascending; a lane's place here is its number in the page
  std::vector<uint32_t> page_lane;  // by lane of the timeline; UINT32_MAX: left out
  uint64_t slices = 0;              // and samples
  uint64_t left_out = 0;            // slices of lanes that are not carried
};
// All lanes where they hold at most `max_slices`; else those of cells where these do; else none.
PageLanes lanes_of_page(const Timeline& timeline, uint64_t max_slices);

// Names and kinds that occur, numbered by how often: O(slices).
struct PagePlaces {
  struct Place {
    uint32_t name = 0;  // into names
    uint8_t kind = 0;
  };
  std::vector<Place> places;
  std::vector<StringId> names;
  std::vector<uint32_t> place_of;  // by place of NameKinds; UINT32_MAX: does not occur
};
PagePlaces places_of_page(const Timeline& timeline, const PageLanes& lanes);

inline constexpr size_t kPagePiece = size_t{1} << 20, kPageGroup = size_t{128} << 10;
struct PagePiece {
  std::string bytes;
  uint32_t first_lane = 0, last_lane = 0;  // numbers in the page; all pieces of a longer lane have the same
};
// Calls take(piece) for one piece after another. A piece has about kPageGroup bytes of lanes that are one block each,
// so that a page reads little more than it shows. For a longer lane it has about kPagePiece bytes. Memory: one piece.
void write_page_slices(const Timeline& timeline, const PageLanes& lanes, const PagePlaces& places,
                       const std::function<void(const PagePiece&)>& take);

// Messages between cells and links between slices of which the page has both ends. Four columns hold signed distances
// (from lane, from slice, to lane, to slice); a fifth holds the FlowType as it is.
struct PageLinks {
  std::string bytes;
  size_t count = 0;
};
PageLinks links_of_page(const Timeline& timeline, const PageLanes& lanes);

}  // namespace stageline
