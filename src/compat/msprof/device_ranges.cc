#include "base/hashes.h"
#include "compat/msprof/communication.h"

namespace stageline {
namespace {

// Works as SQLite's LIKE '%needle%': ASCII letters match in either case, and '_' in the needle stands for any one
// character. The needles are all ASCII; only the character at '_' may have several bytes.
bool contains_like(std::string_view text, std::string_view before, std::string_view after = {}) {
  const auto same_at = [&](size_t at, std::string_view needle) {
    return at + needle.size() <= text.size() &&
           sqlite3_strnicmp(text.data() + at, needle.data(), static_cast<int>(needle.size())) == 0;
  };
  for (size_t at = 0; at + before.size() <= text.size(); ++at) {
    if (!same_at(at, before)) continue;
    if (after.empty()) return true;
    const size_t next = character_end(text, at + before.size());
    if (same_at(next, after)) return true;
  }
  return false;
}

enum class Word : uint8_t { kForward, kBackward, kPop };

struct HostRange {
  int64_t connection, start_ns, end_ns;
  uint32_t next = UINT32_MAX;  // next entry of the same bucket, later in the file
  Word word;
};

// connectionId → ranges, in file order.
class ByConnection {
 public:
  explicit ByConnection(std::vector<HostRange> ranges) : ranges_(std::move(ranges)) {
    size_t buckets = 16;
    while (buckets < ranges_.size() * 2) buckets *= 2;
    heads_.assign(buckets, UINT32_MAX);
    for (size_t i = ranges_.size(); i-- > 0;) {
      uint32_t& head = heads_[bucket(ranges_[i].connection)];
      ranges_[i].next = head;
      head = static_cast<uint32_t>(i);
    }
  }
  template <class Visit> void each(int64_t connection, Visit&& visit) const {
    for (uint32_t i = heads_[bucket(connection)]; i != UINT32_MAX; i = ranges_[i].next)
      if (ranges_[i].connection == connection) visit(ranges_[i]);
  }

 private:
  size_t bucket(int64_t connection) const { return seeded_hash(connection, seed_) & (heads_.size() - 1); }
  uint64_t seed_ = hash_seed();
  std::vector<HostRange> ranges_;
  std::vector<uint32_t> heads_;
};

struct Step {
  int64_t start_ns, end_ns, id, order;
};

// Steps by start, in a tree that stores the latest end of each subtree, since a range is inside few of many steps.
class Steps {
 public:
  explicit Steps(std::vector<Step> steps) : steps_(std::move(steps)) {
    sort_stably(steps_, {}, &Step::start_ns);
    while (leaves_ < steps_.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, INT64_MIN);
    for (size_t i = 0; i < steps_.size(); ++i) latest_[leaves_ + i] = steps_[i].end_ns;
    for (size_t i = leaves_ - 1; i > 0; --i) latest_[i] = std::max(latest_[2 * i], latest_[2 * i + 1]);
  }
  // Finds the steps that contain [start, end], in file order.
  void around(int64_t start_ns, int64_t end_ns, std::vector<Step>& found) const {
    found.clear();
    const auto after = std::ranges::upper_bound(steps_, start_ns, {}, &Step::start_ns);
    collect(1, 0, leaves_, after - steps_.begin(), end_ns, found);
    if (found.size() > 1) sort_stably(found, {}, &Step::order);
  }

 private:
  void collect(size_t node, size_t begin, size_t size, size_t limit, int64_t end_ns, std::vector<Step>& found) const {
    if (begin >= limit || latest_[node] < end_ns || steps_.empty()) return;
    if (size == 1) {
      found.push_back(steps_[begin]);
      return;
    }
    collect(2 * node, begin, size / 2, limit, end_ns, found);
    collect(2 * node + 1, begin + size / 2, size / 2, limit, end_ns, found);
  }
  std::vector<Step> steps_;
  std::vector<int64_t> latest_;
  size_t leaves_ = 1;
};

Result<std::unordered_map<int64_t, Word, SeededHash>> messages_of(const SqliteDb& db, std::string& missing) {
  std::unordered_map<int64_t, Word, SeededHash> words;
  SqliteRows rows = rows_of(db, "STRING_IDS", {"id", "value"}, &missing);
  while (rows.next()) {
    const std::string_view text = rows.text(1);
    if (contains_like(text, "forward")) words.emplace(rows.integer(0), Word::kForward);
    else if (contains_like(text, "backward")) words.emplace(rows.integer(0), Word::kBackward);
    else if (contains_like(text, "WeightGradStore", "pop")) words.emplace(rows.integer(0), Word::kPop);
  }
  if (!rows.ok()) return rows.status().error();
  return words;
}

Result<std::vector<HostRange>> host_ranges(const SqliteDb& db,
                                           const std::unordered_map<int64_t, Word, SeededHash>& words,
                                           const HostWindow& pops, std::string& missing) {
  std::vector<HostRange> ranges;
  SqliteRows rows = rows_of(db, "MSTX_EVENTS", {"startNs", "endNs", "message", "connectionId"}, &missing);
  while (rows.next()) {
    if (rows.is_null(2) || rows.is_null(3)) continue;
    const auto word = words.find(rows.integer(2));
    if (word == words.end()) continue;
    const int64_t start = rows.integer(0);
    if (word->second == Word::kPop && (start < pops.from_ns || start > pops.to_ns)) continue;
    ranges.push_back({rows.integer(3), start, rows.integer(1), UINT32_MAX, word->second});
  }
  if (!rows.ok()) return rows.status().error();
  return ranges;
}

Result<std::vector<Step>> steps_of(const SqliteDb& db, std::string& missing) {
  std::vector<Step> steps;
  SqliteRows rows = rows_of(db, "STEP_TIME", {"id", "startNs", "endNs"}, &missing);
  while (rows.next())
    if (!rows.is_null(0)) steps.push_back({rows.integer(1), rows.integer(2), rows.integer(0), rows.count()});
  if (!rows.ok()) return rows.status().error();
  return steps;
}

}  // namespace

Result<DeviceRanges> read_device_ranges(const SqliteDb& db, const HostWindow& pops) {
  DeviceRanges out;
  TRY(words, messages_of(db, out.missing));
  TRY(host, host_ranges(db, *words, pops, out.missing));
  if (!out.missing.empty()) return out;
  std::string no_steps;
  TRY(step_rows, steps_of(db, no_steps));
  const bool stepless = no_steps == "STEP_TIME";
  const Steps steps(std::move(*step_rows));
  out.rows.reserve(host->size());
  const ByConnection by_connection(std::move(*host));

  // Rows with equal starts are in the order in which SQLite walks TaskIndex (startNs, globalTaskId), then in file
  // order.
  std::vector<int64_t> tie;
  tie.reserve(out.rows.capacity());
  bool ordered = true;
  std::vector<Step> around;
  SqliteRows rows = rows_of(db, "TASK", {"startNs", "endNs", "connectionId", "globalTaskId?"}, &out.missing);
  while (rows.next() && out.rows.size() <= kMaxDeviceRanges) {
    if (rows.is_null(2)) continue;
    by_connection.each(rows.integer(2), [&](const HostRange& range) {
      DeviceRange row = {rows.integer(0), rows.integer(1), 0, stepless, range.word == Word::kForward};
      const auto add = [&] {
        ordered = ordered && (out.rows.empty() || out.rows.back().start_ns < row.start_ns);
        out.rows.push_back(row);
        tie.push_back(rows.integer(3));
      };
      if (!stepless) steps.around(range.start_ns, range.end_ns, around);
      if (stepless || around.empty()) return add();
      row.has_step = true;
      for (const Step& step : around) {
        row.step = step.id;
        add();
      }
    });
  }
  if (!rows.ok()) return rows.status().error();
  if (out.rows.size() > kMaxDeviceRanges)
    return make_error(ErrorCode::kLimit,
                      "more than " + std::to_string(kMaxDeviceRanges) + " ranges on the device, or steps that overlap",
                      "", {db.path()});
  if (!ordered) {
    std::vector<uint32_t> order(out.rows.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    sort_stably(order, [&](uint32_t a, uint32_t b) {
      return std::make_tuple(out.rows[a].start_ns, tie[a], a) < std::make_tuple(out.rows[b].start_ns, tie[b], b);
    });
    std::vector<DeviceRange> sorted(order.size());
    for (size_t i = 0; i < order.size(); ++i) sorted[i] = out.rows[order[i]];
    out.rows = std::move(sorted);
  }
  return out;
}

std::optional<HostWindow> window_of_step(const SqliteDb& db, int64_t step) {
  SqliteRows rows = rows_of(db, "STEP_TIME", {"id", "startNs", "endNs"});
  while (rows.next())
    if (rows.integer(0) == step) return HostWindow{rows.integer(1), rows.integer(2)};
  return std::nullopt;
}

}  // namespace stageline
