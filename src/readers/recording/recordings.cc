#include "readers/recording/recordings.h"

#include <filesystem>

#include "base/json_members.h"
#include "base/parallel.h"
#include "readers/recording/problems.h"

namespace stageline::recording {
namespace {

constexpr size_t kMaxMetaMembers = 256;

// Converts 32 hexadecimal digits into 16 bytes; returns "" for anything else.
std::string bytes_of_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  std::string out;
  for (size_t i = 0; i + 1 < text.size() && out.size() < 16; i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return "";
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return out.size() == 16 ? out : "";
}

// Returns the stem of a path: "…/host.r00003.p4711.1700000000.002.slrec" → "host.r00003.p4711.1700000000".
std::string stem_of(const std::string& path) {
  std::string name = file_name(path);
  const size_t hot = name.rfind(".slhot");
  if (hot != std::string::npos) return name.substr(0, hot);
  const size_t cold = name.rfind(".slrec");
  if (cold == std::string::npos) return name;
  name.resize(cold);
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

// Returns what identifies the recording of a file: its own uuid, else its name.
std::string key_of(const Content& content, const Meta& meta, const std::string& path) {
  if (content.head.good) return content.head.uuid;
  return meta.uuid.empty() ? stem_of(path) : meta.uuid;
}

struct File {
  std::string path;
  bool hot = false;
  std::optional<Result<Content>> cold_content;
  std::optional<Result<HotContent>> hot_content;
};

struct BlockOf {
  const Content* file;
  const RowBlock* block;
};

// Returns the blocks of files in the order in which they were written. Where chunks, or files with damaged headers,
// come in another order, they are ordered by ring and place. Blocks that came in order stay so, including the order of
// different rings' blocks.
std::vector<BlockOf> blocks_in_order(const std::vector<const Content*>& files) {
  std::vector<BlockOf> blocks;
  std::map<uint32_t, uint64_t> last;
  bool in_order = true;
  for (const Content* file : files)
    for (const RowBlock& block : file->blocks) {
      blocks.push_back({file, &block});
      const auto [at, is_new] = last.try_emplace(block.ring, block.first);
      in_order &= is_new || at->second <= block.first;
      at->second = block.first;
    }
  if (!in_order) sort_stably(blocks, {}, [](const BlockOf& a) { return std::tie(a.block->ring, a.block->first); });
  return blocks;
}

// Appends those rows whose places of the ring are new.
void append_rows(Content& all, const std::vector<BlockOf>& blocks, std::map<uint32_t, uint64_t>& next,
                 Recording& recording) {
  for (const auto& [content, placed] : blocks) {
    const Content& file = *content;
    const RowBlock& block = *placed;
    size_t begin = block.begin;
    if (block.ring < kMaxRings) {
      const auto known = next.find(block.ring);
      // If the oldest files of a recording were removed (STAGELINE_KEEP), it is not known where rings began.
      const bool late = file.begins_late || recording.content.head.part > 0;
      const uint64_t from = known != next.end() ? known->second : late ? block.first : 0;
      // Rows before the ring's last known place exist twice: in the file, and still in memory when the process died or
      // was read. Rows from memory have their number of places, so the new ones among them are kept.
      uint64_t position = block.first;
      while (position < from && begin < block.end) position += std::max<uint64_t>(1, file.rows[begin++].slots);
      recording.repeated_rows += static_cast<int64_t>(begin - block.begin);
      if (begin > block.begin && file.rows[block.begin].slots == 0) continue;  // packed: a chunk that is there twice
      const uint64_t end = block.first > UINT64_MAX - block.slots ? UINT64_MAX : block.first + block.slots;
      if (block.first > from && !file.begins_late)
        recording.lost_slots += static_cast<int64_t>(std::min<uint64_t>(block.first - from, INT32_MAX));
      next[block.ring] = std::max(from, end);
    }
    all.rows.insert(all.rows.end(), file.rows.begin() + begin, file.rows.begin() + block.end);
  }
}

// Appends everything else.
void append_tables(Content& all, Content& file) {
  for (auto& [id, name] : file.names) all.names.try_emplace(id, std::move(name));
  for (auto& [id, lane] : file.lanes) all.lanes[id] = std::move(lane);
  all.snapshots.insert(all.snapshots.end(), file.snapshots.begin(), file.snapshots.end());
  all.anchors.insert(all.anchors.end(), file.anchors.begin(), file.anchors.end());
  for (size_t i = 0; i < all.drops.size(); ++i)
    all.drops[i] = std::min<int64_t>(INT64_MAX / 4, all.drops[i] + std::min<int64_t>(INT64_MAX / 4, file.drops[i]));
  all.ended |= file.ended;
  all.begins_late |= file.begins_late;
  all.memory_lost |= file.memory_lost;
  all.bad_chunks += file.bad_chunks;
  all.unknown_chunks += file.unknown_chunks;
}

// Returns the files that are recordings, by their first bytes. When they are asked for again and again (`newest_bytes`
// above 0), their names must do.
std::vector<File> files_of(const Source& source, Diagnostics& diagnostics, int64_t newest_bytes) {
  std::vector<File> files;
  for (size_t i = 0; i < source.files.size(); ++i) {
    const std::string name = file_name(source.files[i].path);
    if (newest_bytes > 0) {
      if (name.ends_with(".slhot") || name.find(".slrec") != std::string::npos)
        files.push_back({source.files[i].path, name.ends_with(".slhot"), {}, {}});
      continue;
    }
    const std::string_view head = source.head(i);
    if (is_hot_file(head)) files.push_back({source.files[i].path, true, {}, {}});
    else if (is_cold(head) || (name.find(".slrec") != std::string::npos && !head.empty()))
      files.push_back({source.files[i].path, false, {}, {}});
    else if (head.empty() && name.ends_with(".slrec"))
      diagnostics.add(problem::recording_unusable_file_empty, {source.files[i].path});
    else if (source.files[i].given) diagnostics.add(problem::recording_unusable_file, {source.files[i].path});
  }
  return files;
}

// Holds the files of one process.
struct Group {
  std::vector<File*> cold;
  File* hot = nullptr;
};

// Adds rows that were still in memory when the process ended, or that another folder has.
void append_hot(Recording& recording, HotContent& hot, std::map<uint32_t, uint64_t>& next) {
  if (!recording.content.head.good) recording.content.head = hot.content.head;
  if (recording.content.meta.empty()) recording.content.meta = hot.content.meta;
  const size_t before = recording.content.rows.size();
  const auto in_files = recording.content.drops;
  const auto in_memory = hot.content.drops;
  append_rows(recording.content, blocks_in_order({&hot.content}), next, recording);
  append_tables(recording.content, hot.content);
  for (size_t i = 0; i < in_files.size(); ++i)
    recording.content.drops[i] = std::max(in_files[i], in_memory[i]);  // GAPs repeat the counters
  recording.hot_rows = recording.content.rows.size() - before;
  recording.open = std::move(hot.open);
}

Recording joined_files(Group& group, Diagnostics& diagnostics) {
  sort_stably(group.cold, [](const File* a, const File* b) {
    return (*a->cold_content)->head.part < (*b->cold_content)->head.part;
  });
  Recording r;
  std::map<uint32_t, uint64_t> next;
  std::vector<const Content*> contents;
  for (File* file : group.cold) {
    Content& content = **file->cold_content;
    if (!r.content.head.good) r.content.head = content.head;
    if (!content.meta.empty()) r.content.meta = content.meta;
    r.paths.push_back(file->path);
    report_damage(content.counts, file->path, diagnostics);
    r.content.counts.torn |= content.counts.torn;
    append_tables(r.content, content);
    contents.push_back(&content);
  }
  append_rows(r.content, blocks_in_order(contents), next, r);
  std::optional<Result<HotContent>> found;
  const std::string elsewhere = parse_meta(r.content.meta).hot;
  if (!group.hot && !r.content.ended && !elsewhere.empty() && r.content.head.good &&
      std::filesystem::path(elsewhere).extension() == ".slhot") {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(elsewhere, ignored)) found.emplace(read_hot(elsewhere));
    if (found && (!*found || (**found).content.head.uuid != r.content.head.uuid)) found.reset();
  }
  r.drops_in_files = r.content.drops;
  if (HotContent* const hot = group.hot ? &**group.hot->hot_content : found ? &**found : nullptr) {
    r.hot_path = group.hot ? group.hot->path : elsewhere;
    append_hot(r, *hot, next);
  }
  r.meta = parse_meta(r.content.meta);
  if (r.meta.rank < 0)
    r.meta.rank = r.content.head.rank >= 0 && r.content.head.rank < 1 << 24 ? r.content.head.rank : -1;
  return r;
}

}  // namespace

bool is_cold(std::string_view head) {
  return head.starts_with(kFileMagic) || head.substr(0, size_t{1} << 16).find(kChunkMagic) != std::string_view::npos;
}

Meta parse_meta(std::string_view json) {
  Meta meta;
  const auto whole = [](std::string_view value, int64_t min, int64_t max, int64_t none) {
    const auto number = json_integer(value);
    return number && *number >= min && *number <= max ? *number : none;
  };
  for (const JsonMember& m : json_members(json, kMaxMetaMembers)) {
    if (!m.whole) continue;
    constexpr int64_t kMaxRank = (int64_t{1} << 24) - 1;
#define META(name, reading) \
  if (m.key == #name) meta.name = reading;
#include "readers/recording/meta.def"
  }
  return meta;
}

std::vector<Recording> read_recordings(const Source& source, Progress* progress, Diagnostics& diagnostics,
                                       int64_t newest_bytes) {
  std::vector<File> files = files_of(source, diagnostics, newest_bytes);
  // Hot files are read before cold ones: rows that leave a ring in between are then in the cold file.
  parallel_for(files.size(), [&](size_t i) {
    if (files[i].hot) files[i].hot_content.emplace(read_hot(files[i].path));
  });
  parallel_for(files.size(), [&](size_t i) {
    if (!files[i].hot) files[i].cold_content.emplace(read_cold(files[i].path, progress, newest_bytes));
  });

  std::map<std::string, Group> groups;
  for (File& file : files) {
    if (file.hot ? !*file.hot_content : !*file.cold_content) {
      const Error& error = file.hot ? file.hot_content->error() : file.cold_content->error();
      diagnostics.add(problem::recording_unreadable_file, Args().set("why", error_text(error)), {file.path});
      continue;
    }
    const Content& content = file.hot ? (**file.hot_content).content : **file.cold_content;
    Group& group = groups[key_of(content, parse_meta(content.meta), file.path)];
    if (file.hot) group.hot = &file;
    else group.cold.push_back(&file);
  }
  auto recordings = mapped<Recording>(groups, [&](auto& entry) { return joined_files(entry.second, diagnostics); });
  sort_stably(recordings, {},
              [](const Recording& a) { return std::tie(a.meta.rank, a.meta.start_realtime_ns, a.paths); });
  return recordings;
}

}  // namespace stageline::recording
