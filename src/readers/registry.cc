#include <filesystem>

#include "base/input_files.h"
#include "base/remote_file.h"
#include "base/zip_archive.h"
#include "readers/foreign.h"
#include "readers/problems.h"
#include "readers/reader.h"

namespace stageline {
namespace {

constexpr size_t kNamedFiles = 64;  // this number of files is searched for a known name when no reader takes the source

}  // namespace

namespace paddle_log {
extern const RankReading kRanks;
}

#define READER(id, title, reads, ...)                                                                               \
  namespace id {                                                                                                    \
  Match sniff(const Source& source);                                                                                \
  Result<Trace> read(const Source& source, const ReadOptions& options);                                             \
  const Reader reader = {.name = title, .summary = reads, .sniff = sniff, .read = read __VA_OPT__(, ) __VA_ARGS__}; \
  }
#include "readers/readers.def"

const std::vector<const Reader*>& readers() {
  static const std::vector<const Reader*> all = {
#define READER(id, ...) &id::reader,
#include "readers/readers.def"
  };
  return all;
}

const Reader* find_reader(std::string_view name) {
  for (const Reader* reader : readers())
    if (reader->name == dashed(name)) return reader;
  return nullptr;
}

namespace {

// The first folder below this one, at any depth, that holds a file; "" without one.
std::string folder_with_files(const std::string& root) {
  constexpr int kMaxLooked = 100'000;
  namespace fs = std::filesystem;
  std::string found;
  std::error_code ec;
  int looked = 0;
  for (fs::recursive_directory_iterator it(root, ec), end; !ec && it != end && ++looked < kMaxLooked;
       it.increment(ec)) {
    const std::string folder = it->path().parent_path().string();
    const bool hidden = it->path().filename().string().starts_with('.');
    if (hidden) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(ec) && it.depth() > 1 && (found.empty() || folder < found)) found = folder;
  }
  return found;
}

std::string first_root(const Source& source) { return source.roots.empty() ? "" : source.roots[0]; }

// Returns the error for a source without files.
Error nothing_to_read(const Source& source) {
  const std::string root = first_root(source);
  if (source.passed.empty()) return input_error("source.no_file", {root}, {}, ErrorCode::kUnknownKind);
  const std::string deeper = folder_with_files(root);
  return input_error("source.none_readable", {root},
                     Args()
                         .set("file", source.passed[0].rel)
                         .set("why", words(source.passed[0].why))
                         .flag("more", source.passed_count > 1)
                         .count("others", source.passed_count - 1)
                         .set("deeper", deeper),
                     ErrorCode::kUnknownKind);
}

// Returns the error for files without a reader: it names their format if known, otherwise all formats that can be read.
Error not_recognised(const Source& source) {
  for (size_t i = 0; i < source.files.size() && i < kNamedFiles; ++i)
    if (const std::string_view format = foreign_format(source.head(i), source.files[i].path); !format.empty())
      return foreign_error(ErrorCode::kUnknownKind, format, source.files[i].path);
  for (size_t i = 0; i < source.files.size() && i < kNamedFiles; ++i)
    if (source.files[i].given)
      if (const std::string_view format = unknown_content(source.head(i), source.files[i].path); !format.empty())
        return foreign_error(ErrorCode::kUnknownKind, format, source.files[i].path);
  std::string known;
  for (const Reader* reader : readers()) known += std::string("\n    ") + reader->name + "  " + reader->summary;
  const bool has_table = std::ranges::any_of(
      source.files, [](const SourceFile& file) { return file.given && file_extension(file.path) == "csv"; });
  return make_error(
      ErrorCode::kUnknownKind, "no reader recognises this input",
      "the readers are:" + known + "\n  name one with --reader if you know better" +
          (has_table ? "\n  a table of timings needs named columns with units, such as "
                       "stage,kind,step,micro_batch,start_ms,dur_ms; --reader op-table says what is missing"
                     : ""),
      {first_root(source)});
}

Result<const Reader*> find_taker(const Source& source, std::string_view forced, Diagnostics* notes) {
  auto names = mapped<std::string>(readers(), [&](const Reader* reader) { return reader->name; });
  const Reader* named = find_reader(forced);
  if (!forced.empty() && !named) {
    const std::string near = nearest(dashed(forced), names);
    return make_error(ErrorCode::kUsage, "no reader \"" + std::string(forced) + "\"",
                      near.empty() ? "stageline help readers lists them" : "did you mean \"" + near + "\"?");
  }
  if (source.files.empty()) return nothing_to_read(source);
  if (named) return named;
  // Thousands of digests need not be offered to every reader, since no other reader has files of that name.
  const auto digests =
      std::ranges::all_of(source.files, [](const SourceFile& file) { return file_extension(file.path) == "sldigest"; });
  if (const Reader* reader = find_reader("digest"); digests && reader->sniff(source) == Match::kCertain) return reader;
  for (const Match wanted : {Match::kCertain, Match::kMaybe}) {
    std::vector<const Reader*> found;
    for (const Reader* reader : readers())
      if (reader->sniff(source) == wanted) found.push_back(reader);
    std::vector<const Reader*> general;
    if (found.size() > 1)
      std::erase_if(found, [&](const Reader* reader) {
        if (reader->is_general) general.push_back(reader);
        return reader->is_general;
      });
    if (found.size() == 1) {
      for (const Reader* reader : general)
        if (notes)
          notes->add(problem::source_other_reader, Args().set("reader", reader->name).set("taken", found[0]->name),
                     {first_root(source)});
      return found[0];
    }
    if (found.size() > 1) {
      return input_error("source.two_readers", {first_root(source)},
                         Args()
                             .set("one", found[0]->name)
                             .set("other", found[1]->name)
                             .set("roots", source.roots.size() > 1 ? shell_words(source.roots) : ""),
                         ErrorCode::kAmbiguous);
    }
  }
  return not_recognised(source);
}

}  // namespace

Result<const Reader*> choose_reader(const Source& source, std::string_view forced, Diagnostics* notes) {
  Result<const Reader*> reader = find_taker(source, forced, notes);
  if (!reader || !(*reader)->from_disk) return reader;
  for (const SourceFile& file : source.files)
    if (const bool packed = disk_path(file.path) != file.path; packed || is_remote(file.path))
      return input_error("source.not_on_disk", {file.path},
                         Args().set("reader", (*reader)->name).flag("packed", packed), ErrorCode::kUnavailable);
  return reader;
}

std::string measurement_kind(const std::string& path) {
  if (is_ascend_file(file_name(path))) return "ascend";  // its files are read together, so each alone is not taken
  const UnnotedReads unnoted;
  const Result<Source> source = scan_source({path});
  if (!source) return source.error().code == ErrorCode::kBadInput ? source.error().what : std::string();
  if (source->files.empty()) return {};
  if (source->files.size() != 1 && disk_path(source->files[0].path) != path) return {};
  const Result<const Reader*> reader = choose_reader(*source, "");
  if (reader) return (*reader)->name;
  if (reader.error().code == ErrorCode::kAmbiguous) return reader.error().what;
  const std::string_view format = foreign_format(source->head(0), path);
  return format.empty() ? std::string() : words(format).en;
}

}  // namespace stageline
