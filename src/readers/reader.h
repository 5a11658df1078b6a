// Reader: how a format enters. One descriptor per format, listed in readers.def.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "model/trace.h"

namespace stageline {

struct SourceFile {
  std::string path;  // as it can be opened
  std::string rel;   // relative to the root it was found under: "machine0/workerlog.1"
  int64_t size_bytes = 0;
  bool given = false;  // named on the command line itself, not found in a folder
};

// What the user pointed at: files, addresses of files or of folders in S3 (base/remote_file.h), or everything two
// levels deep in folders, in natural order. Below that, only files whose names are an Ascend profiler's own count
// (is_ascend_file) and profiles of XLA: their folders lie at any depth. A truth.csv in a folder is passed over (see
// source.cc), and so is a folder with kPpChartMark, unless it is named itself. Limits: kMaxSourceFiles files.
inline constexpr size_t kMaxSourceFiles = 100'000;
// The file that marks a folder as copies of `stageline pp-chart`: the same measurement once more.
inline constexpr const char* kPpChartMark = "stageline_pp_chart.json";
struct Source {
  std::vector<std::string> roots;
  std::vector<SourceFile> files;
  std::vector<std::string> unreadable;  // folders and files that may not be opened
  std::vector<std::string> repeated;    // the same file under a second name: left out
  std::vector<std::string> copies;      // folders below a root that pp-chart filled with copies: left out

  // The first 64 KiB of a file, decompressed; read once and kept.
  std::string_view head(size_t file) const;
  // What ended the head before its 64 KiB and the end of the file: compressed data that is damaged or cut, a file that
  // cannot be read. nullptr: nothing.
  const Error* head_error(size_t file) const;
  // The head's bytes are the file's own: it is not compressed.
  bool head_as_it_is(size_t file) const;
  // Gives back what heads take once a reader is chosen: 64 KiB a file. Who asks again reads again.
  void forget_heads() const { heads_.clear(); }

 private:
  struct Head {
    std::string bytes;
    std::optional<Error> error;
    bool read = false, compressed = false;
  };
  const Head& head_of(size_t file) const;
  mutable std::vector<Head> heads_;
};
// "ascend_pytorch_profiler_3.db", "analysis.db", "profiler_info_3.json", "kernel_details.csv", …
bool is_ascend_file(std::string_view name);
Result<Source> scan_source(const std::vector<std::string>& paths);

enum class Match : uint8_t { kNo, kMaybe, kCertain };

// Takes what a reader has so far, while it goes on: parts with lanes and the columns start_ns, dur_ns, name_id,
// category_id and kernel_class, and nothing else. Called a few times in a long reading, from one thread at a time; each
// call replaces what came before.
using EarlyTrace = std::function<void(Trace)>;

struct ReadOptions {
  Progress* progress = nullptr;
  EarlyTrace early;              // of readers that can; may be empty
  int64_t early_after_ms = 800;  // of reading; then again when it took three times as long
  std::vector<int32_t> devices;  // Paddle: only these workerlog numbers; empty means all found
  // Ascend: leave out kernels and host calls; ranges, their device side, communication and steps make a pipeline.
  bool only_ranges = false;
  // Recordings: of each file's end at most about so many bytes, with the tables at its beginning; 0: all of it. Says
  // recording.newest_only where something was left out.
  int64_t newest_bytes = 0;
};

// One rank of a source, by what names say alone.
struct RankSource {
  Part who;                        // rank, machine, machine_name, device, source
  std::vector<std::string> paths;  // its files
  int64_t size_bytes = 0;
};

// For readers whose ranks can be read apart, in any order and by any number of processes (docs/formats/digest.md):
// list, read each, put the traces of the ranks together in rank order (readers/common/join_ranks.h), settle.
struct RankReading {
  // By rank. What was left out is counted.
  std::vector<RankSource> (*list)(const Source& source, const ReadOptions& options, Diagnostics& diagnostics);
  // A trace of one part, with what its files say alone. Errors: kNotFound, kIo, kBadInput; nothing could be read.
  Result<Trace> (*read)(const RankSource& rank, const ReadOptions& options);
  // What takes all ranks: steps, clock, description. The trace is then as Reader::read gives it. Errors: kBadInput when
  // nothing is left to draw.
  Status (*settle)(Trace& trace, const ReadOptions& options);
};

struct Reader {
  const char* name;     // "paddle-log"
  const char* summary;  // one line
  // Looks at names and heads only. kCertain: the format says so itself; kMaybe: it would parse.
  Match (*sniff)(const Source& source);
  // Reads the files it recognises; files of the source that are not its own are left alone, but a
  // file named on the command line that it cannot use is counted in Diagnostics.
  // Errors: kBadInput when nothing could be saved. Parts come ordered by rank, cells sorted.
  Result<Trace> (*read)(const Source& source, const ReadOptions& options);
  bool takes_devices = false;   // knows numbered devices (ReadOptions::devices)
  bool is_general = false;      // reads any input of a wide kind; gives way when a narrower reader says kMaybe too
  bool accounts_files = false;  // says itself what became of every file that is its own
  bool from_disk = false;       // opens its files by SQLite or as folders: not what lies behind a network address
  const RankReading* ranks = nullptr;  // nullptr: the source is read as a whole
};

const std::vector<const Reader*>& readers();
const Reader* find_reader(std::string_view name);  // nullptr when there is none; `_` serves for `-`

// The reader for a source: `forced` when not empty, else the surest one. Errors: kUnknownKind with
// what each reader looks for, kAmbiguous naming both and suggesting --reader. A general reader that knew the input as
// surely and gave way is named in `notes` ("source.other_reader"), if given.
Result<const Reader*> choose_reader(const Source& source, std::string_view forced, Diagnostics* notes = nullptr);

}  // namespace stageline
