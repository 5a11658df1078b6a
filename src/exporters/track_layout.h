// TrackLayout: the rows of a trace viewer, shared by every exporter that has rows.
//
//   steps                    step 0 (2.21 s) | step 1 (2.19 s) | …
//   machine 0                one process per machine
//     rank 0 · stage 0       one thread per lane of a rank, ranks in order
//     rank 0 · messages
//     rank 1 · stage 1
//     rank 1 · stage 1 (2)   opened where cells of one lane overlap
//   machine 1 …
//
// Viewers can only draw slices of one track that are apart or properly nested. They lose, garble or nest the others
// without any message. Therefore nothing overlaps in a row of ours.
#pragma once

#include "model/trace.h"

namespace stageline {

struct Process {
  std::string name;           // "machine 0", the machine's own name, or "ranks" when no machine is known
  uint32_t pid = 0;           // machine + 1, never 0
  size_t begin = 0, end = 0;  // range of tracks
};

struct Track {
  // "rank 3 · stage 3", "rank 3 · messages", "… (2)"; ends in "· dp 1" when there are several replicas.
  std::string name;
  uint32_t pid = 0;
  // small, unique in the file, never 0, and never equal to a pid: Perfetto would take such a thread for the main thread
  // of that process.
  uint32_t tid = 0;
  uint32_t part = 0;
  size_t begin = 0, end = 0;  // range of TrackLayout::cells
};

struct StepSlice {
  int32_t step = 0;
  int64_t start_ns = 0, end_ns = 0;  // first start and last end of the step's cells on all ranks
  size_t row = 0;                    // index into step_tracks
};

struct StepTrack {
  std::string name;  // "steps"; also "steps (2)" where steps overlap
  uint32_t tid = 0;
};

struct TrackLayout {
  std::vector<Process> processes;
  std::vector<Track> tracks;     // in the order in which they are shown
  std::vector<uint32_t> cells;   // cell indices, track by track, each track in start order
  std::vector<StepSlice> steps;  // sorted by start; cells without a step are in none
  std::vector<StepTrack> step_tracks;
  uint32_t step_pid = 0;
  // The number of cells that would need a row beyond kMaxRowsPerLane. Exporters leave these cells out and say so in the
  // file.
  size_t cells_left_out = 0;
  Extent extent;  // extent of the trace; kept here because finding it is a pass over all cells
};

inline constexpr int kMaxRowsPerLane = 64;

// O(n log n) at worst, O(n) when the cells are already sorted. The result takes 4 bytes per cell; the computation takes
// 8 more.
TrackLayout lay_out_tracks(const Trace& trace);

}  // namespace stageline
