#include "engine/make_digests.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/crc32c.h"
#include "base/file_sample.h"
#include "base/input_files.h"
#include "base/output_file.h"
#include "base/parallel.h"
#include "base/remote_file.h"
#include "base/zip_archive.h"
#include "engine/account_files.h"
#include "engine/problems.h"
#include "readers/digest/digest_file.h"

namespace stageline {
namespace {

namespace fs = std::filesystem;

// Returns a text of size, time and checksum; another version of the file has another text.
std::string version_of(const std::string& path) {
  int64_t size = 0, modified_ns = 0;
  uint32_t sample = 0;
  if (is_remote(path)) {
    if (const Result<RemoteFile> file = remote_file(path)) {
      size = file->size_bytes;
      modified_ns = file->modified_ns;
      sample = crc32c(file->version);
    }
  } else if (struct stat st; stat(disk_path(path).c_str(), &st) == 0) {
    size = st.st_size;
    modified_ns = st.st_mtim.tv_sec * int64_t{1'000'000'000} + st.st_mtim.tv_nsec;
    sample = file_sample(disk_path(path), size);
  }
  char text[16];
  snprintf(text, sizeof text, "%08x", sample);
  return std::to_string(size) + " " + std::to_string(modified_ns) + " " + text;
}

// Returns a text that identifies a unit and its source: "paddle-log 0.1.0 rank 3 machine 0 device 3 m0 |
// /logs/workerlog.3 4711 1700000000000000000 89abcdef".
std::string key_of(const DigestPlan& plan, const DigestUnit& unit) {
  const Part& who = unit.rank.who;
  std::string key = std::string(plan.reader->name) + " " STAGELINE_VERSION;
  if (plan.reader->ranks)
    key += " rank " + std::to_string(who.rank) + " machine " + std::to_string(who.machine) + " device " +
           std::to_string(who.device) + " " + who.machine_name;
  for (const std::string& path : unit.rank.paths) key += " | " + path + " " + version_of(path);
  // A whole source may have thousands of files, and its key is in each of its digests, so a long key is shortened.
  constexpr size_t kMaxKeyBytes = 4096;
  if (key.size() > kMaxKeyBytes) {
    char sum[32];
    snprintf(sum, sizeof sum, "%08x%08x", crc32c(key), crc32c(key, 0x5167u));
    key = key.substr(0, 256) + " … " + std::to_string(unit.rank.paths.size()) + " files " + sum;
  }
  return valid_utf8(key);
}

struct Known {  // what a name in the folder stands for
  enum State : uint8_t { kMissing, kDamaged, kWhole } state = kMissing;
  digest::Head head;
  int64_t bytes = 0;
};
Known look_at(const std::string& path) {
  Known known;
  const std::optional<std::string> bytes = own_file(path);
  if (!bytes) return known;
  known.bytes = bytes->size();
  const Result<digest::Digest> digest = digest::parse(*bytes, path);
  known.state = digest ? Known::kWhole : Known::kDamaged;
  if (digest) known.head = digest->head;
  return known;
}

std::vector<std::string> digests_in(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* const dir = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(dir))
      if (std::string_view(entry->d_name).ends_with(digest::kExtension)) names.emplace_back(entry->d_name);
    closedir(dir);
  }
  std::ranges::sort(names);
  return names;
}

std::string absolute(const std::string& path) {
  if (is_remote(path)) return path;
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, ec), ec);
  return ec ? path : whole.string();
}

// The place of the source that a folder, which may not be there yet, lies in or holds files of; "" where it is apart.
// By what folders are, not what they are called: links and mounts give one several names.
std::string place_among(const std::string& folder, const std::vector<std::string>& paths, const Source& source) {
  using Id = std::pair<dev_t, ino_t>;
  const auto id_of = [](const fs::path& path) -> std::optional<Id> {
    struct stat st;
    if (stat(path.c_str(), &st) != 0) return std::nullopt;
    return Id{st.st_dev, st.st_ino};
  };
  std::map<Id, std::string> roots, holders;
  for (const std::string& path : paths)
    if (const auto id = is_remote(path) ? std::nullopt : id_of(path)) roots.emplace(*id, path);
  std::string last;  // files of a folder come together
  for (const SourceFile& file : source.files) {
    if (is_remote(file.path) || file.path == "-") continue;
    std::string parent = fs::path(file.path).parent_path().string();
    if (parent.empty()) parent = ".";
    if (parent == last) continue;
    last = parent;
    if (const auto id = id_of(parent)) holders.emplace(*id, parent);
  }
  for (fs::path at = absolute(folder);; at = at.parent_path()) {
    if (const auto id = id_of(at)) {
      if (const auto root = roots.find(*id); root != roots.end()) return root->second;
      if (const auto holder = holders.find(*id); holder != holders.end() && at == absolute(folder))
        return holder->second;
    }
    if (at == at.parent_path()) return "";
  }
}

// Removes older digests of the same rank and source: the source has changed since, or another version of the program
// made them. A damaged one stays, because it may be of another source.
int64_t drop_older(const DigestPlan& plan, const digest::Head& head) {
  const std::string own = digest::file_name_of(head), begin = own.substr(0, own.find('.') + 1);
  int64_t dropped = 0;
  for (auto name = std::ranges::lower_bound(plan.there, begin); name != plan.there.end() && name->starts_with(begin);
       ++name) {
    if (*name == own) continue;
    const std::string path = plan.folder + "/" + *name;
    const Known known = look_at(path);
    if (known.state == Known::kWhole && known.head.root == head.root) dropped += ::unlink(path.c_str()) == 0;
  }
  return dropped;
}

bool wanted(const DigestPlan& plan, int32_t rank) {
  return rank >= plan.options.first_rank && rank <= plan.options.last_rank;
}

struct Written {  // a digest whose file waits for those that appear with it
  digest::Head head;
  bool damaged = false;  // it takes the place of a damaged one
  int64_t bytes = 0;
};

void write_digest(const DigestPlan& plan, const digest::Head& head, const Trace& trace, DigestCount& count,
                  std::vector<Written>& written) {
  const std::string path = plan.folder + "/" + digest::file_name_of(head);
  const bool damaged = look_at(path).state == Known::kDamaged;
  if (damaged) ::unlink(path.c_str());
  const std::string bytes = digest::pack(head, trace);
  if (Status s = write_file(path, bytes, OutputFile::Over::kKept); !s) {
    count.failures.push_back(s.error());
    return;
  }
  written.push_back({head, damaged, std::ssize(bytes)});
}

digest::Head head_of(const DigestPlan& plan, const DigestUnit& unit) {
  digest::Head head;
  head.key = key_of(plan, unit);
  head.reader = plan.reader->name;
  head.root = plan.root;
  return head;
}

void keep_losses(const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& d : from.items())
    if (d.severity == Severity::kLoss) to.add(d);
}

// Returns the files of the source of which nothing could be read. The `parts` of the trace say which were read.
Diagnostics damaged_files(const DigestPlan& plan, Trace& trace) {
  Diagnostics kept = trace.diagnostics, damaged;
  const DigestOptions& asked = plan.options;
  account_files(plan.source, asked.first_rank <= 0 && asked.last_rank == DigestOptions().last_rank, false, trace);
  for (const Diagnostic& d : trace.diagnostics.items())
    if (d.name == "source.damaged") damaged.add(d);
  trace.diagnostics = std::move(kept);
  return damaged;
}

void make_rank(const DigestPlan& plan, const DigestUnit& unit, DigestCount& count, std::vector<Written>& written) {
  digest::Head head = head_of(plan, unit);
  head.rank = unit.rank.who.rank;
  head.source = unit.rank.who.source;
  const Known known = look_at(plan.folder + "/" + digest::file_name_of(head));
  if (known.state == Known::kWhole && known.head.key == head.key) {
    ++count.kept;
    count.bytes += known.bytes;
    if (plan.options.progress) plan.options.progress->add(unit.rank.size_bytes);
    return;
  }
  ReadOptions read;
  read.progress = plan.options.progress;
  Result<Trace> trace = plan.reader->ranks->read(unit.rank, read);
  if (!trace) {
    count.failures.push_back(trace.error());
    return;
  }
  keep_losses(trace->diagnostics, count.losses);
  head.cells = trace->cells.size();
  head.slices = trace->slice_count();
  write_digest(plan, head, *trace, count, written);
}

// Returns part `p` of a trace as a trace of its own.
Trace split_off(const Trace& trace, size_t p) {
  Trace one;
  take_facts(one, trace);
  one.categories = trace.categories;
  for (uint32_t id = 0; id < trace.names.size(); ++id) one.names.intern(trace.names.text(id));
  one.parts.push_back(trace.parts[p]);
  for (size_t i = 0; i < trace.cells.size(); ++i) {
    if (trace.cells.part[i] != static_cast<int32_t>(p)) continue;
    Cell cell = trace.cells.at(i);
    cell.part = 0;
    one.cells.add(cell);
  }
  if (p == 0) one.diagnostics = trace.diagnostics;
  return one;
}

void make_whole(const DigestPlan& plan, const DigestUnit& unit, DigestCount& count, std::vector<Written>& written) {
  digest::Head head = head_of(plan, unit);
  DigestCount there;
  int64_t ranks = 0, here = 0;
  for (const std::string& name : plan.there) {
    const Known known = look_at(plan.folder + "/" + name);
    if (known.state != Known::kWhole || known.head.key != head.key) continue;
    ranks = known.head.ranks_of_source;
    ++here;
    if (!wanted(plan, known.head.rank)) continue;
    ++there.kept;
    there.bytes += known.bytes;
  }
  const int64_t asked = std::min<int64_t>(ranks, int64_t{plan.options.last_rank} - plan.options.first_rank + 1);
  if (ranks > 0 && (here == ranks || there.kept == asked)) {
    count.add(there);
    return;
  }
  ReadOptions read;
  read.progress = plan.options.progress;
  Result<Trace> trace = plan.reader->read(plan.source, read);
  if (!trace) {
    count.failures.push_back(with_names(trace.error(), plan.source));
    return;
  }
  if (!plan.reader->accounts_files) trace->diagnostics.merge(damaged_files(plan, *trace));
  keep_losses(trace->diagnostics, count.losses);
  if (trace->cells.size() == 0) {
    count.failures.push_back(
        {ErrorCode::kUnavailable,
         std::string("digests hold pipeline cells, and what the reader ") + plan.reader->name + " gives has none",
         {plan.root},
         "profiler traces are read from their own files: stageline explain, report and analyze take them"});
    return;
  }
  head.ranks_of_source = trace->parts.size();
  for (size_t p = 0; p < trace->parts.size(); ++p) {
    if (!wanted(plan, trace->parts[p].rank)) continue;
    const Trace one = split_off(*trace, p);
    head.rank = one.parts[0].rank;
    head.source = one.parts[0].source;
    head.cells = one.cells.size();
    head.slices = one.slice_count();
    write_digest(plan, head, one, count, written);
  }
}

// Makes digests. Digests of ranks that are read one by one appear together, so that they are put on the disk together;
// those of a whole source appear as they are made.
DigestCount make_together(const DigestPlan& plan, std::span<const DigestUnit> units) {
  DigestCount count;
  std::vector<Written> written;
  {
    std::optional<OutputSet> set;
    if (plan.reader->ranks) set.emplace();
    for (const DigestUnit& unit : units)
      plan.reader->ranks ? make_rank(plan, unit, count, written) : make_whole(plan, unit, count, written);
    if (Status s = set ? set->commit() : Status(); !s) {
      count.failures.push_back(s.error());
      return count;
    }
  }
  for (const Written& one : written) {
    const bool older = drop_older(plan, one.head) > 0;
    ++count.made;
    count.remade += one.damaged || older;
    count.cells += one.head.cells;
    count.bytes += one.bytes;
  }
  return count;
}

// Returns the first unit of each batch, whose digests appear together. Batches are small enough that all threads have
// work and that a killed run loses little of it.
std::vector<size_t> batches(const DigestPlan& plan) {
  constexpr size_t kMaxUnits = 32, kPerThread = 8;
  constexpr int64_t kMaxBytes = int64_t{256} << 20;
  const size_t max = std::clamp<size_t>(plan.units.size() / (kPerThread * thread_count()), 1, kMaxUnits);
  std::vector<size_t> begins;
  int64_t bytes = 0;
  for (size_t i = 0; i < plan.units.size(); ++i) {
    if (begins.empty() || i - begins.back() >= max || bytes + plan.units[i].rank.size_bytes > kMaxBytes) {
      begins.push_back(i);
      bytes = 0;
    }
    bytes += plan.units[i].rank.size_bytes;
  }
  begins.push_back(plan.units.size());
  return begins;
}

}  // namespace

void DigestCount::add(const DigestCount& other) {
  made += other.made;
  remade += other.remade;
  kept += other.kept;
  cells += other.cells;
  bytes += other.bytes;
  failures.insert(failures.end(), other.failures.begin(), other.failures.end());
  losses.merge(other.losses);
}

Result<DigestPlan> plan_digests(const std::vector<std::string>& paths, const std::string& folder,
                                const DigestOptions& options) {
  DigestPlan plan{.folder = folder, .options = options};
  TRY(source, scan_source(paths));
  plan.source = std::move(*source);
  Result<const Reader*> reader = choose_reader(plan.source, options.reader);
  if (!reader) {
    if (reader.error().code == ErrorCode::kUnknownKind)
      if (std::optional<Error> damage = damage_of(plan.source)) return *std::move(damage);
    return with_names(std::move(reader).error(), plan.source);
  }
  plan.reader = *reader;
  plan.source.forget_heads();
  if (plan.reader->name == std::string_view("digest"))
    return make_error(ErrorCode::kUsage, "these are digests already", "every command reads their folder", {paths[0]});
  if (const std::string among = place_among(folder, paths, plan.source); !among.empty())
    return make_error(ErrorCode::kUsage, "digests would lie among the files they are made of",
                      "choose a folder outside of " + among, {folder});
  for (const std::string& path : paths) append_item(plan.root, absolute(path), " ");
  plan.root = valid_utf8(plan.root);
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return make_error(ErrorCode::kIo, "cannot make this folder: " + ec.message(), "", {folder});
  // One look at the folder is enough, since everything that is written here has the folder's root.
  plan.there = digests_in(folder);
  for (const std::string& name : plan.there) {
    const Known known = look_at(folder + "/" + name);
    if (known.state != Known::kWhole) continue;
    if (known.head.root == plan.root) break;
    return make_error(ErrorCode::kUsage, "this folder holds digests of another source, " + known.head.root,
                      "choose another folder for those of " + plan.root, {folder});
  }
  if (!plan.reader->ranks) {
    DigestUnit unit;
    for (const SourceFile& file : plan.source.files) {
      unit.rank.paths.push_back(file.path);
      unit.rank.size_bytes += file.size_bytes;
    }
    plan.bytes = unit.rank.size_bytes;
    plan.units.push_back(std::move(unit));
    return plan;
  }
  for (RankSource& rank : plan.reader->ranks->list(plan.source, ReadOptions{}, plan.notes)) {
    if (!wanted(plan, rank.who.rank)) continue;
    plan.bytes += rank.size_bytes;
    plan.units.push_back({std::move(rank)});
  }
  if (plan.units.empty())
    return make_error(ErrorCode::kBadInput, "none of the ranks named by --ranks is there",
                      "stageline info lists the ranks", {paths[0]});
  sort_stably(plan.units, std::greater(), [](const DigestUnit& a) { return a.rank.size_bytes; });
  return plan;
}

DigestCount make_digest(const DigestPlan& plan, const DigestUnit& unit) { return make_together(plan, {&unit, 1}); }

DigestCount make_digests(const DigestPlan& plan) {
  if (plan.options.progress) plan.options.progress->expect(plan.bytes);
  const std::vector<size_t> begins = batches(plan);
  std::vector<DigestCount> counts(begins.size() - 1);
  parallel_for(counts.size(), [&](size_t i) {
    counts[i] = make_together(plan, std::span(plan.units).subspan(begins[i], begins[i + 1] - begins[i]));
  });
  DigestCount all;
  for (const DigestCount& count : counts) all.add(count);
  if (plan.reader->ranks && !plan.reader->accounts_files) {
    Trace read;  // says which files belong to some rank
    for (const DigestUnit& unit : plan.units) {
      Part part;
      for (const std::string& path : unit.rank.paths) part.files.push_back({path});
      read.parts.push_back(std::move(part));
    }
    read.diagnostics = all.losses;
    all.losses.merge(damaged_files(plan, read));
  }
  std::set<std::string> reported;
  for (const Diagnostic& d : plan.notes.items()) reported.insert(d.first.file);
  for (const Diagnostic& d : all.losses.items()) reported.insert(d.first.file);
  for (const SourceFile& file : plan.source.files)
    if (const std::string why = input_failure(file.path); !why.empty() && reported.insert(file.path).second)
      all.losses.add(problem::source_damaged, Args().set("why", why), {file.path});
  return all;
}

}  // namespace stageline
