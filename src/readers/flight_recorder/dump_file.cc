#include "readers/flight_recorder/dump_file.h"

#include "base/input.h"
#include "base/json_tree.h"
#include "base/pickle.h"
#include "model/source_limits.h"
#include "readers/common/frames.h"
#include "readers/flight_recorder/problems.h"

namespace stageline::flight_recorder {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} << 30;
constexpr int64_t kMaxElements = int64_t{1} << 60;

// Parses "[0, 1, 2, 3]" or a list of numbers; anything else gives no ranks.
std::vector<int32_t> ranks_of(Value value) {
  std::vector<int32_t> ranks;
  const auto add = [&](std::optional<int64_t> rank) {
    if (rank && *rank >= 0 && *rank <= kMaxRankNumber) ranks.push_back(static_cast<int32_t>(*rank));
  };
  if (value.is_list()) {
    for (size_t i = 0; i < value.size(); ++i) add(value.item(i).integer());
  } else {
    std::string_view text = trim(value.text());
    if (text.size() >= 2 && (text.front() == '[' || text.front() == '(')) text = text.substr(1, text.size() - 2);
    for (const std::string_view one : split(text, ',')) add(parse_int(trim(one)));
  }
  sort_unique(ranks);
  return ranks;
}

// Writes sizes as PyTorch's tools print them: "[[64, 32], [8]]".
std::string sizes_text(Value sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += i > 0 ? ", [" : "[";
    const Value one = sizes.item(i);
    for (size_t k = 0; k < one.size(); ++k)
      text += (k > 0 ? ", " : "") + std::to_string(one.item(k).integer().value_or(-1));
    text += "]";
  }
  return text + "]";
}

int64_t elements_of(Value sizes) {
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    double product = 1;
    const Value one = sizes.item(i);
    for (size_t k = 0; k < one.size(); ++k) product *= one.item(k).integer().value_or(0);
    sum += product;
  }
  return sum >= 0 && sum < kMaxElements ? static_cast<int64_t>(sum) : 0;
}

std::string dtypes_text(Value dtypes) {
  std::string text;
  for (size_t i = 0; i < dtypes.size(); ++i) text += (i > 0 ? ", " : "") + std::string(dtypes.item(i).text());
  return text;
}

int64_t bytes_of(Value sizes, Value dtypes) {
  if (dtypes.size() == 0) return -1;
  const int bytes = dtype_bytes(dtypes.item(0).text());
  return bytes > 0 ? elements_of(sizes) * bytes : -1;
}

FlightState state_of(std::string_view text) {
  return text == "completed" ? FlightState::kCompleted
         : text == "started" ? FlightState::kStarted
                             : FlightState::kScheduled;
}

// Reads a timestamp; where there is none, pickles have None and JSON has 0.
int64_t stamp(Value value) {
  const auto ns = value.integer();
  return ns && *ns > 0 && *ns <= kMaxTimeNs ? *ns : -1;
}

// A parsed name "nccl:send 0->1": both ranks are positions in the group, and the sender comes first whichever way the
// arrow points.
struct CallName {
  std::string_view op;
  int64_t own = -1, peer = -1;
};
CallName parse_name(std::string_view text) {
  CallName name;
  const size_t colon = text.find(':');
  name.op = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const size_t blank = name.op.find(' ');
  if (blank == std::string_view::npos) return name;
  const std::string_view places = trim(name.op.substr(blank + 1));
  const size_t arrow = std::min(places.find("->"), places.find("<-"));
  if (arrow == std::string_view::npos) return name;
  name.own = parse_int(trim(places.substr(0, arrow))).value_or(-1);
  name.peer = parse_int(trim(places.substr(arrow + 2))).value_or(-1);
  name.op = name.op.substr(0, blank);
  return name;
}

class DumpReader {
 public:
  explicit DumpReader(const DumpFile& file) : file_(file) {}

  Result<Dump> read(Value root) {
    const Value entries = root.is_list() ? root : root["entries"];
    if (const auto rank = root["rank"].integer(); rank && *rank >= 0 && *rank <= kMaxRankNumber)
      out_.part.rank = static_cast<int32_t>(*rank);
    else out_.part.rank = file_.rank;
    out_.part.source = file_.path;
    out_.version = root["version"].text();
    read_groups(root["pg_config"]);
    for (const char* key : {"version", "comm_lib_version", "nccl_version"})
      if (const std::string_view text = root[key].text(); !text.empty())
        out_.part.metadata.push_back({key, "\"" + std::string(text) + "\""});
    last_stamp_ = 0;
    for (size_t i = 0; i < entries.size(); ++i)
      for (const char* key : {"time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"})
        last_stamp_ = std::max(last_stamp_, stamp(entries.item(i)[key]));
    for (size_t i = 0; i < entries.size(); ++i) read_entry(entries.item(i), i);
    if (rows_.empty() && (entries.size() > 0 || !root["pg_config"].is_dict()))
      return make_error(ErrorCode::kBadInput, "no call of this dump could be read", "", {file_.path});
    lay_lanes();
    return std::move(out_);
  }

  Dump& out() { return out_; }

 private:
  struct Row {
    FlightCall call;
    CollectiveFact fact;
    StringId stack = 0, name = 0;
    int64_t start_ns = 0, dur_ns = 0;
    uint32_t file_index = 0;
  };

  void lose(const Problem& problem) { out_.diagnostics.add(problem, {file_.path}); }

  void read_groups(Value config) {
    for (size_t i = 0; i < config.size(); ++i) {
      const Value one = config.item(i);
      FlightGroup group;
      group.name = config.key(i).text();
      group.description = one["desc"].text();
      group.ranks = ranks_of(one["ranks"]);
      group.members_known = !group.ranks.empty();
      by_name_.emplace(group.name, static_cast<int32_t>(out_.groups.size()));
      out_.groups.push_back(std::move(group));
    }
  }

  // Returns the group that a call names. One that pg_config does not list (as in gloo's dumps) is made, with unknown
  // members.
  int32_t group_of(Value entry) {
    const Value both = entry["process_group"];
    const std::string name(both.item(0).text()), description(both.item(1).text());
    const auto [at, is_new] = by_name_.try_emplace(name, static_cast<int32_t>(out_.groups.size()));
    if (is_new) out_.groups.push_back({name, description, {}, false});
    FlightGroup& group = out_.groups[at->second];
    if (group.description.empty()) group.description = description;
    return at->second;
  }

  StringId stack_of(Value frames) {
    if (!frames.is_list() || frames.size() == 0) return 0;
    const auto [at, is_new] = stacks_.try_emplace(frames.node(), 0);
    if (!is_new) return at->second;
    return at->second = out_.names.intern(stack_text(frames));
  }

  void read_entry(Value entry, size_t index) {
    if (!entry.is_dict() || entry.is_cut()) return lose(problem::flight_recorder_bad_call_cut);
    const int64_t created = stamp(entry["time_created_ns"]);
    const std::string_view full_name = entry["profiling_name"].text();
    if (created < 0 || full_name.empty()) return lose(problem::flight_recorder_bad_call);
    const CallName name = parse_name(full_name);
    Row row;
    FlightCall& call = row.call;
    call.group = group_of(entry);
    const FlightGroup& group = out_.groups[call.group];
    call.is_send = name.op == "send";
    call.is_p2p = entry["is_p2p"].boolean().value_or(false) || call.is_send || name.op == "recv";
    call.record_id = entry["record_id"].integer().value_or(static_cast<int64_t>(index));
    const Value sequence = call.is_p2p ? entry["p2p_seq_id"] : entry["collective_seq_id"];
    call.sequence = sequence.integer().value_or(entry["seq_id"].integer().value_or(-1));
    call.timeout_ms = entry["timeout_ms"].integer().value_or(-1);
    call.completed_ns = stamp(entry["time_discovered_completed_ns"]);
    call.state = state_of(entry["state"].text());
    // Gloo retires a call when the wait for it ends, by a time-out as well, and leaves its state as it was when made.
    if (call.state == FlightState::kCompleted) call.completed_ns = std::max<int64_t>(call.completed_ns, 0);
    if (entry["retired"].boolean().value_or(false) || call.completed_ns > 0) call.state = FlightState::kCompleted;
    call.op = out_.names.intern(valid_utf8(name.op));
    const Value in = entry["input_sizes"], out = entry["output_sizes"];
    const Value in_types = entry["input_dtypes"], out_types = entry["output_dtypes"];
    call.in_sizes = out_.names.intern(sizes_text(in));
    call.out_sizes = out_.names.intern(sizes_text(out));
    call.in_dtypes = out_.names.intern(valid_utf8(dtypes_text(in_types)));
    call.out_dtypes = out_.names.intern(valid_utf8(dtypes_text(out_types)));
    const auto global = [&](int64_t place) {
      if (place < 0) return int32_t{-1};
      if (!group.members_known) return static_cast<int32_t>(std::min<int64_t>(place, kMaxRankNumber));
      return static_cast<size_t>(place) < group.ranks.size() ? group.ranks[place] : int32_t{-1};
    };
    if (call.is_p2p) call.peer = global(name.peer);

    CollectiveFact& fact = row.fact;
    fact.name = call.op;
    fact.dtype = call.in_dtypes != 0 ? call.in_dtypes : call.out_dtypes;
    fact.group = out_.names.intern(valid_utf8(group.name));
    fact.group_description = out_.names.intern(valid_utf8(group.description));
    fact.group_size = group.ranks.size();
    fact.in_elements = elements_of(in);
    fact.out_elements = elements_of(out);
    fact.bytes = std::max(bytes_of(in, in_types), bytes_of(out, out_types));
    fact.seq = call.sequence;
    if (call.is_p2p) {
      fact.peer = name.peer;
      fact.src_rank = call.is_send ? out_.part.rank : call.peer;
      fact.dst_rank = call.is_send ? call.peer : out_.part.rank;
    }
    row.stack = stack_of(entry["frames"]);
    row.name = out_.names.intern(valid_utf8(full_name));
    row.start_ns = created;
    row.dur_ns = duration_of(entry, call, created);
    row.file_index = static_cast<uint32_t>(std::min<size_t>(index, UINT32_MAX));
    rows_.push_back(row);
  }

  // A call lasts as long as the device took, where that was timed; otherwise until the recorder noticed that it was
  // finished. An unfinished call lasts until the dump's last stamp.
  int64_t duration_of(Value entry, const FlightCall& call, int64_t created) const {
    if (const auto ms = entry["duration_ms"].real(); ms && std::isfinite(*ms) && *ms >= 0 && *ms < 1e12)
      return std::llround(*ms * 1e6);
    if (call.completed_ns > 0) return std::max<int64_t>(0, call.completed_ns - created);
    return call.state == FlightState::kCompleted ? 0 : std::max<int64_t>(0, last_stamp_ - created);
  }

  // Makes one lane per group, with calls in the order in which they were recorded.
  void lay_lanes() {
    std::vector<Row> sorted;
    std::vector<FlightCall>& calls = out_.part.flight_calls;
    for (uint32_t g = 0; g < out_.groups.size(); ++g) {
      Slices lane;
      std::vector<const Row*> of_group;
      for (const Row& row : rows_) {
        if (row.call.group != static_cast<int32_t>(g)) continue;
        of_group.push_back(&row);
        lane.start_ns.push_back(row.start_ns);
        lane.dur_ns.push_back(row.dur_ns);
        lane.name_id.push_back(row.name);
        lane.file_index.push_back(row.file_index);
      }
      if (of_group.empty()) continue;
      const FlightGroup& group = out_.groups[g];
      const std::string name = group.description.empty() || group.description == "undefined"
                                   ? "group " + group.name
                                   : group.description + " (group " + group.name + ")";
      const std::vector<uint32_t> new_index = out_.part.add_lane(valid_utf8(name), lane);
      for (size_t i = 0; i < of_group.size(); ++i) {
        const Row& row = *of_group[i];
        FlightCall call = row.call;
        call.slice = new_index[i];
        calls.push_back(call);
        CollectiveFact fact = row.fact;
        fact.slice = call.slice;
        out_.part.collectives.push_back(fact);
        if (row.stack != 0) out_.part.stacks.push_back({call.slice, row.stack, 0});
      }
    }
    out_.has_frames = !out_.part.stacks.empty();
    const auto by_slice = [](const auto& a, const auto& b) { return a.slice < b.slice; };
    std::sort(calls.begin(), calls.end(), by_slice);
    std::sort(out_.part.collectives.begin(), out_.part.collectives.end(), by_slice);
    std::sort(out_.part.stacks.begin(), out_.part.stacks.end(), by_slice);
  }

  const DumpFile& file_;
  Dump out_;
  std::map<std::string, int32_t> by_name_;
  std::unordered_map<uint32_t, StringId> stacks_;  // for each node of frames, since calls share them
  std::vector<Row> rows_;
  int64_t last_stamp_ = 0;
};

}  // namespace

int32_t rank_of_name(const std::string& path) {
  std::string name = file_name(path);
  if (const size_t dot = name.find('.'); dot != std::string::npos) name.resize(dot);
  const size_t last = name.find_last_not_of("0123456789");
  const std::string digits = name.substr(last == std::string::npos ? 0 : last + 1);
  const auto rank = digits.empty() || digits.size() > 9 ? std::nullopt : parse_int(digits);
  return rank && *rank <= kMaxRankNumber ? static_cast<int32_t>(*rank) : kUnknown;
}

bool looks_like_dump(std::string_view head) {
  // Each part alone may be longer than a head: the groups of a job of thousands of ranks, or its calls where they come
  // first. So a dump is known by the names within either part, too.
  const bool groups = mentions(head, "pg_config") && (mentions(head, "entries") || mentions(head, "pg_status") ||
                                                      (mentions(head, "desc") && mentions(head, "ranks")));
  const bool calls =
      mentions(head, "entries") && mentions(head, "collective_seq_id") && mentions(head, "profiling_name");
  if (begins_pickle(head)) return groups || calls;
  const size_t at = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return at != std::string_view::npos && head[at] == '{' &&
         ((groups && mentions(head, "\"pg_config\"")) || (calls && mentions(head, "\"entries\""))) &&
         !mentions(head, "\"traceEvents\"") && !mentions(head, "\"schemaVersion\"");
}

Result<Dump> read_dump(const DumpFile& file, Progress* progress) {
  TRY(bytes, read_all(file.path, kMaxFileBytes, progress));
  ValueTree tree;
  int64_t broken_at = -1;
  std::string why;
  if (begins_pickle(*bytes)) {
    TRY(pickle, parse_pickle(std::move(*bytes), file.path));
    broken_at = pickle->broken_at;
    why = pickle->why_broken;
    tree = std::move(pickle->tree);
  } else {
    TRY(json, parse_json_tree(*bytes, file.path));
    broken_at = json->broken_at;
    why = "the JSON is damaged";
    tree = std::move(json->tree);
  }
  DumpReader reader(file);
  if (broken_at >= 0)
    reader.out().diagnostics.add(problem::flight_recorder_damaged, Args().set("why", why), {file.path, 0, broken_at});
  return reader.read(tree.root());
}

}  // namespace stageline::flight_recorder
