#include "readers/chakra/trace_file.h"

#include "base/error_words.h"
#include "base/input.h"
#include "base/proto_scan.h"
#include "model/source_limits.h"
#include "readers/chakra/problems.h"
#include "readers/common/row_kinds.h"

namespace stageline::chakra {
namespace {

using namespace gpu_rows;

constexpr size_t kWindowBytes = size_t{1} << 20;
constexpr size_t kMaxMessageBytes = size_t{64} << 20;
constexpr size_t kMaxNodeNameBytes = 4096;

#define PROTO_FIELDS "readers/chakra/fields.def"
#include "base/proto_fields.def"
namespace node {
enum Type : uint64_t { kLoad = 2, kStore = 3, kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7 };
}

// Reads the messages of a file, one after the other.
class Messages {
 public:
  explicit Messages(Input& input) : input_(input) {}

  // The next one; it lives until the next call. False: the end, or error() or is_cut() say why there is none.
  bool next(std::string_view& message) {
    for (;;) {
      const char* at = buffer_.data() + begin_;
      const char* const end = buffer_.data() + buffer_.size();
      uint64_t length = 0;
      const bool has_length = ProtoScan::read_varint(at, end, length);
      if (has_length && length > kMaxMessageBytes) return fail();
      if (has_length && length <= static_cast<uint64_t>(end - at)) {
        message = {at, static_cast<size_t>(length)};
        begin_ = (at - buffer_.data()) + static_cast<size_t>(length);
        return true;
      }
      if (finished_) return buffer_.size() == begin_ ? false : fail();
      fill();
    }
  }
  bool is_cut() const { return is_cut_; }
  const std::optional<Error>& error() const { return error_; }
  int64_t position() const { return before_ + static_cast<int64_t>(begin_); }

 private:
  void fill() {
    buffer_.erase(buffer_.begin(), buffer_.begin() + begin_);
    before_ += static_cast<int64_t>(begin_);
    begin_ = 0;
    const size_t held = buffer_.size();
    buffer_.resize(held + kWindowBytes);
    Result<size_t> got = input_.read(buffer_.data() + held, kWindowBytes);
    buffer_.resize(held + (got ? *got : 0));
    finished_ = !got || *got == 0;
    if (!got) error_ = std::move(got).error();
  }
  bool fail() {
    is_cut_ = true;
    return false;
  }

  Input& input_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  int64_t before_ = 0;  // position of buffer_[0]
  bool finished_ = false, is_cut_ = false;
  std::optional<Error> error_;
};

// A name and a single value; lists are passed over.
struct Attribute {
  std::string_view name, text;
  std::optional<int64_t> number;
};
Attribute attribute_of(std::string_view bytes) {
  Attribute out;
  for (ProtoScan scan(bytes); scan.next();) switch (scan.id) {
      case attribute::kName:
        if (scan.is_bytes()) out.name = scan.bytes;
        break;
      case attribute::kText:
        if (scan.is_bytes()) out.text = scan.bytes;
        break;
      case attribute::kSint32:
      case attribute::kSint64:
        if (!scan.is_bytes()) out.number = static_cast<int64_t>(scan.value >> 1 ^ (~(scan.value & 1) + 1));
        break;
      case attribute::kInt32:
      case attribute::kInt64:
      case attribute::kUint32:
      case attribute::kUint64:
      case attribute::kFixed32:
      case attribute::kFixed64:
      case attribute::kSfixed64:
      case attribute::kBool:
        if (!scan.is_bytes()) out.number = scan.as_signed();
        break;
      case attribute::kSfixed32:
        if (!scan.is_bytes()) out.number = static_cast<int32_t>(scan.value);
        break;
      default: break;
    }
  return out;
}

// Converts CollectiveCommType to torch's names.
std::string_view collective_name(int64_t type) {
  constexpr std::string_view kNames[] = {"allreduce", "reduce",   "allgather",      "gather",         "scatter",
                                         "broadcast", "alltoall", "reduce_scatter", "reduce_scatter", "barrier"};
  return type >= 0 && type < static_cast<int64_t>(std::size(kNames)) ? kNames[type] : "collective";
}

struct Node {
  uint64_t id = 0, type = 0, start_us = 0, duration_us = 0;
  std::string_view name, group;
  bool has_host = false, on_host = false;
  int64_t collective = -1, bytes = -1, from = -1, to = -1, thread = 0, stream = -1;
  bool is_communication() const { return type >= node::kSend && type <= node::kCollective; }
};

class FileReader {
 public:
  explicit FileReader(const std::string& path) : path_(path), out_(path, kKinds, "chakra") {}

  Result<TraceFile> read(Progress* progress) {
    TRY(input, Input::open(path_, progress));
    Messages messages(*input);
    TraceFile file;
    std::string_view message;
    for (bool first = true; messages.next(message); first = false)
      if (first) read_metadata(message, file.version);
      else read_node(message, messages.position());
    if (messages.error())
      out_.notes.add(problem::chakra_read_stopped, Args().set("why", error_text(*messages.error())),
                     {path_, 0, messages.error()->where.byte});
    else if (messages.is_cut()) out_.notes.add(problem::chakra_truncated, {path_, 0, messages.position()});
    // The converter, and makers of traces for simulators, leave every start at 0; one node alone may begin there.
    if (out_.row_count() == 0) lay_out();
    else if (at_zero_ > 1) out_.notes.add(problem::chakra_no_start, {path_}, at_zero_);
    else if (at_zero_ == 1)
      for (const Undated& node : undated_)
        if (node.n.duration_us > 0) add(node);
    if (out_.row_count() == 0)
      return make_error(ErrorCode::kBadInput, "no node of this Chakra trace has a time",
                        "give the profile that it was made of: torch.profiler's *.pt.trace.json", {path_});
    relate();
    file.path = path_;
    file.part = out_.finish(file.names);
    file.notes = std::move(out_.notes);
    return file;
  }

 private:
  void read_metadata(std::string_view message, std::string& version) {
    for (ProtoScan scan(message); scan.next();) {
      if (!scan.is_bytes()) continue;
      if (scan.id == metadata::kVersion) version = valid_utf8(scan.bytes.substr(0, 64));
      if (scan.id != metadata::kAttribute) continue;
      const Attribute attribute = attribute_of(scan.bytes);
      if (version.empty() && (attribute.name == "schema" || attribute.name == "version"))
        version = valid_utf8(attribute.text.substr(0, 64));
    }
  }

  void read_node(std::string_view message, int64_t position) {
    Node n;
    dependencies_.clear();
    ProtoScan scan(message);
    while (scan.next()) switch (scan.id) {
        case node::kId: n.id = scan.value; break;
        case node::kName:
          if (scan.is_bytes()) n.name = scan.bytes.substr(0, kMaxNodeNameBytes);
          break;
        case node::kType: n.type = scan.value; break;
        case node::kStart: n.start_us = scan.value; break;
        case node::kDuration: n.duration_us = scan.value; break;
        case node::kControl:
        case node::kData: read_dependencies(scan); break;
        case node::kAttribute:
          if (scan.is_bytes()) read_attribute(attribute_of(scan.bytes), n);
          break;
        default: break;
      }
    if (scan.is_damaged()) {
      out_.notes.add(problem::chakra_damaged_node, {path_, 0, position});
      return;
    }
    out_.part.event_count++;
    if (n.type < node::kLoad || n.type > node::kCollective) return;  // facts of groups, and nodes of later versions
    if (n.start_us == 0) {
      at_zero_ += n.duration_us > 0;
      undated_.push_back({n, std::string(n.name), std::string(n.group), dependencies_});
      return;
    }
    add(n, n.name, n.group);
  }

  void read_dependencies(const ProtoScan& scan) {
    const bool data = scan.id == node::kData;
    if (!scan.is_bytes()) return dependencies_.push_back({scan.value, data});
    const char *at = scan.bytes.data(), *end = at + scan.bytes.size();
    for (uint64_t id = 0; at != end && ProtoScan::read_varint(at, end, id);) dependencies_.push_back({id, data});
  }

  static void read_attribute(const Attribute& attribute, Node& n) {
    if (attribute.name == "is_cpu_op" && attribute.number) n.has_host = true, n.on_host = *attribute.number != 0;
    if (attribute.name == "pg_name") n.group = attribute.text;
    if (!attribute.number) return;
    if (attribute.name == "comm_type") n.collective = *attribute.number;
    if (attribute.name == "comm_size" || (attribute.name == "tensor_size" && n.bytes < 0)) n.bytes = *attribute.number;
    if (attribute.name == "comm_src") n.from = *attribute.number;
    if (attribute.name == "comm_dst") n.to = *attribute.number;
    if (attribute.name == "tid") n.thread = *attribute.number;
    if (attribute.name == "stream" || attribute.name == "cuda_stream") n.stream = *attribute.number;
  }

  struct Dependency {
    uint64_t id;
    bool is_data;  // else of control
  };
  struct Undated {  // a node without a start, with its own texts
    Node n;
    std::string name, group;
    std::vector<Dependency> dependencies;
  };

  void add(const Undated& node) {
    dependencies_ = node.dependencies;
    add(node.n, node.name, node.group);
  }

  // Where no node says when it started, each starts as soon as what it waits for has ended and its thread or stream is
  // free: the graph's own fastest run.
  void lay_out() {
    if (at_zero_ == 0) return;
    std::unordered_map<uint64_t, size_t> at;
    for (size_t k = 0; k < undated_.size(); ++k) at.emplace(undated_[k].n.id, k);
    std::vector<std::vector<size_t>> users(undated_.size());
    std::vector<size_t> missing(undated_.size(), 0);
    for (size_t k = 0; k < undated_.size(); ++k)
      for (const Dependency& on : undated_[k].dependencies)
        if (const auto before = at.find(on.id); before != at.end() && before->second != k)
          users[before->second].push_back(k), ++missing[k];
    std::set<size_t> ready;  // in the file's order
    for (size_t k = 0; k < undated_.size(); ++k)
      if (missing[k] == 0) ready.insert(k);
    std::vector<uint64_t> from(undated_.size(), 0);
    std::map<std::pair<bool, int64_t>, uint64_t> free;  // (of the host, thread or stream) → when it is
    size_t placed = 0;
    while (!ready.empty()) {
      const size_t k = *ready.begin();
      ready.erase(ready.begin());
      ++placed;
      Undated& node = undated_[k];
      const bool on_host = node.n.has_host ? node.n.on_host : node.n.type == node::kCompute;
      const int64_t lane = on_host                         ? node.n.thread
                           : node.n.stream >= 0            ? node.n.stream
                           : node.n.is_communication()     ? -1
                           : node.n.type == node::kCompute ? -2
                                                           : -3;
      node.n.start_us = from[k];
      if (node.n.duration_us > 0) {
        uint64_t& lane_free = free[{on_host, lane}];
        node.n.start_us = std::max(node.n.start_us, lane_free);
        lane_free = std::min(node.n.start_us + node.n.duration_us, kMaxUs);
        add(node);
      }
      const uint64_t end = std::min(node.n.start_us + node.n.duration_us, kMaxUs);
      for (const size_t user : users[k]) {
        from[user] = std::max(from[user], end);
        if (--missing[user] == 0) ready.insert(user);
      }
    }
    out_.notes.add(problem::chakra_laid_out, {path_}, static_cast<int64_t>(placed));
    if (placed < undated_.size())  // these wait for each other
      out_.notes.add(problem::chakra_no_start, {path_}, static_cast<int64_t>(undated_.size() - placed));
  }

  void add(const Node& n, std::string_view name, std::string_view group) {
    // Computation is an operator's where nothing says where it ran; what moves data is the device's.
    const bool on_host = n.has_host ? n.on_host : n.type == node::kCompute;
    const bool fits = n.start_us <= kMaxUs && n.duration_us <= kMaxUs - n.start_us;
    const int64_t start = fits ? static_cast<int64_t>(n.start_us) * 1000 : -1;
    const int64_t end = fits ? start + static_cast<int64_t>(n.duration_us) * 1000 : -1;
    const bool copies = n.type == node::kLoad || n.type == node::kStore;
    const uint32_t row = out_.add(on_host ? out_.host_lane(0, n.thread) : device_lane(n),
                                  on_host  ? kOperator
                                  : copies ? kMemcpy
                                           : kKernel,
                                  start, end, out_.text(valid_utf8(name)));
    if (row == kNoRow) return;
    rows_.insert_or_assign(n.id, Placed{row, on_host});
    for (const Dependency& on : dependencies_) waits_.push_back({row, on, on_host});
    if (copies && !on_host) out_.copies.push_back({row, n.bytes, 0});
    if (!n.is_communication()) return;
    CollectiveFact fact{.slice = row,
                        .name = out_.text(n.type == node::kSend      ? "send"
                                          : n.type == node::kReceive ? "recv"
                                                                     : collective_name(n.collective)),
                        .group = out_.text(valid_utf8(group)),
                        .bytes = n.bytes};
    if (n.type == node::kSend) fact.dst_rank = fact.peer = n.to;
    if (n.type == node::kReceive) fact.src_rank = fact.peer = n.from;
    out_.collectives.push_back(fact);
  }

  uint32_t device_lane(const Node& n) {
    if (n.stream >= 0) return out_.stream_lane(0, n.stream);
    return out_.named_stream_lane(0, n.is_communication()       ? "communication"
                                     : n.type == node::kCompute ? "computation"
                                                                : "copies");
  }

  // Device work belongs to the first operator that it waits for. Whose data a node needs is an arrow to it; that a node
  // lies within another one is seen by their times.
  void relate() {
    uint32_t owned = kNoRow;
    for (const Wait& wait : waits_) {
      const auto before = rows_.find(wait.on.id);
      if (before == rows_.end() || before->second.row == wait.row) continue;
      if (before->second.on_host && !wait.on_host) {
        if (owned != wait.row) out_.own(wait.row, before->second.row);
        owned = wait.row;
      } else if (wait.on.is_data) {
        out_.link(before->second.row, wait.row, SliceLinkKind::kFlow);
      }
    }
  }

  struct Placed {
    uint32_t row;
    bool on_host;
  };
  struct Wait {
    uint32_t row;
    Dependency on;
    bool on_host;
  };
  const std::string path_;
  PartBuilder out_;
  static constexpr uint64_t kMaxUs = static_cast<uint64_t>(kMaxTimeNs) / 1000;
  std::vector<Dependency> dependencies_;       // of the node at hand
  std::unordered_map<uint64_t, Placed> rows_;  // by node
  std::vector<Wait> waits_;
  int64_t at_zero_ = 0;  // nodes with a duration and no start
  std::vector<Undated> undated_;
};

}  // namespace

bool looks_like_chakra(std::string_view head) {
  const char *at = head.data(), *end = at + head.size();
  uint64_t length = 0;
  if (!ProtoScan::read_varint(at, end, length) || length == 0 || length > static_cast<uint64_t>(end - at)) return false;
  ProtoScan about({at, static_cast<size_t>(length)});
  bool has_content = false;
  while (about.next()) {
    if (!about.is_bytes() || about.id > metadata::kAttribute) return false;
    has_content = has_content || about.id == metadata::kVersion || attribute_of(about.bytes).name.size() > 1;
  }
  if (about.is_damaged() || !has_content) return false;
  at += length;
  if (!ProtoScan::read_varint(at, end, length) || length == 0) return false;
  // The node may go on beyond the head: its number, name and type come first.
  const size_t there = std::min<uint64_t>(length, end - at);
  ProtoScan first({at, there});
  bool named = false;
  while (first.next()) {
    const bool is_number =
        first.id == node::kId || first.id == node::kType || first.id == node::kStart || first.id == node::kDuration;
    if (first.id > node::kLast || is_number == first.is_bytes()) {
      if (first.id != node::kControl && first.id != node::kData) return false;
    }
    named = named || first.id == node::kName;
  }
  return named && (!first.is_damaged() || there < length);
}

Result<TraceFile> read_trace_file(const std::string& path, Progress* progress) {
  return FileReader(path).read(progress);
}

}  // namespace stageline::chakra
