// Reader: how a format enters the program. Each format has one descriptor, listed in readers.def.
#pragma once

#include "base/error_words.h"
#include "base/progress.h"
#include "model/trace.h"
#include "readers/source.h"

namespace stageline {

// Returns true when a text has a word. memmem skips what cannot start one; string_view::find() looks at every quotation
// mark of JSON (some 20 times the instructions in the first 64 KiB of a trace).
inline bool holds(std::string_view text, std::string_view word) {
  return !text.empty() && memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

enum class Match : uint8_t { kNo, kMaybe, kCertain };

// Receives the partial result of a reader while it goes on: parts with lanes and the columns start_ns, dur_ns, name_id,
// category_id and kernel_class, and nothing else. It is called a few times during a long reading, from one thread at a
// time; each call replaces what came before.
using EarlyTrace = std::function<void(Trace)>;

struct ReadOptions {
  Progress* progress = nullptr;
  EarlyTrace early;  // for readers that can show early; may be empty
  // First after so much reading, then again each time when reading took three times as long.
  int64_t early_after_ms = 800;
  std::vector<int32_t> devices;  // for Paddle: read only these workerlog numbers; empty means all that are found
  // For Ascend: leave out kernels and host calls. Ranges, their device side, communication and steps are enough for a
  // pipeline.
  bool only_ranges = false;
  // For recordings: read at most about this number of bytes of the end of each file, and the tables at its beginning; 0
  // reads everything. The note recording.newest_only reports that the rest was skipped.
  int64_t newest_bytes = 0;
  // For profiler traces: the rank of each file by its path, whatever it says itself. Nothing is then taken for a copy
  // or for an earlier run of another file.
  std::map<std::string, int32_t> file_ranks = {};
};

// One rank of a source, identified by file names.
struct RankSource {
  Part who;                        // rank, machine, machine_name, device and source are filled
  std::vector<std::string> paths;  // its files
  int64_t size_bytes = 0;
};

// For readers that can read ranks one by one, in any order and in any number of processes (docs/formats/digest.md). A
// caller lists the ranks, reads each, joins the traces in rank order (readers/common/ranks.h), and settles.
struct RankReading {
  // Lists the ranks in order; counts what was left out.
  std::vector<RankSource> (*list)(const Source& source, const ReadOptions& options, Diagnostics& diagnostics);
  // Reads a trace of one part from that rank's files alone. Errors: kNotFound, kIo, kBadInput, when nothing could be
  // read.
  Result<Trace> (*read)(const RankSource& rank, const ReadOptions& options);
  // Does what needs all ranks: steps, clock, description. The trace is then what Reader::read returns. Errors:
  // kBadInput when there is nothing left to draw.
  Status (*settle)(Trace& trace, const ReadOptions& options);
};

struct Reader {
  const char* name;     // "paddle-log"
  const char* summary;  // one line
  // Looks at names and heads only. kCertain: the format identifies itself; kMaybe: the reader could parse it.
  Match (*sniff)(const Source& source);
  // Reads the files that it recognises. Other files of the source are left alone, except that a file named on the
  // command line that it cannot use is counted in Diagnostics. Errors: kBadInput when nothing could be saved. Parts are
  // ordered by rank, and cells are sorted.
  Result<Trace> (*read)(const Source& source, const ReadOptions& options);
  bool takes_devices = false;  // the reader knows numbered devices (ReadOptions::devices)
  bool is_general = false;  // reads any input of a wide kind; gives way to a narrower reader that also answers kMaybe
  bool accounts_files = false;  // reports itself what became of each of its files
  bool from_disk = false;       // opens its files by SQLite or as folders, so it cannot read from a network address
  const RankReading* ranks = nullptr;  // nullptr when the source can only be read as a whole
  bool takes_file_ranks = false;       // the reader heeds ReadOptions::file_ranks
};

const std::vector<const Reader*>& readers();
const Reader* find_reader(std::string_view name);  // nullptr when there is none; the name may have `_` for `-`

// Returns the reader for a source: `forced` when not empty, else the most certain one. Errors: kUnknownKind, with what
// each reader looks for; kAmbiguous, which names both readers and suggests --reader. A general reader that was as
// certain and gave way is named in `notes` ("source.other_reader"), if given.
Result<const Reader*> choose_reader(const Source& source, std::string_view forced, Diagnostics* notes = nullptr);

// Returns the kind of measurement in a file of this machine, in words: a format of a reader, or a format without a
// reader that choose_reader() names. "" for other files. It makes no input of the file.
std::string measurement_kind(const std::string& path);

// Errors on input that cannot be read. The sentence `name` says what is wrong, and NAME.do what to do, if anything.
inline Error input_error(std::string_view name, Where where, const Args& args = {},
                         ErrorCode code = ErrorCode::kBadInput) {
  const std::string to_do = std::string(name) + ".do";
  return worded_error(code, name, args, std::move(where), has_words(to_do) ? words(to_do, args).en : "");
}

// Of input in which nothing of a format was found.
inline Error no_such_input(std::string_view name, const Source& source) {
  return input_error(name, {source.roots.empty() ? "" : source.roots[0]});
}

}  // namespace stageline
