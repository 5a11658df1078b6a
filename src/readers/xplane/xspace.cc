#include "base/error_words.h"
#include "base/input.h"
#include "base/proto_scan.h"
#include "readers/common/op_names.h"
#include "readers/xplane/events.h"
#include "readers/xplane/problems.h"

namespace stageline::xplane {
namespace {

constexpr size_t kWindowBytes = size_t{1} << 18;
constexpr uint64_t kLongestName = 1 << 16;
constexpr uint64_t kLongestEntry = uint64_t{16} << 20;  // limit for an entry of event_metadata; HLO programs are longer
constexpr uint64_t kMaxPlaneBytes = uint64_t{4} << 30;
constexpr uint32_t kPlanes = 1, kErrors = 2, kWarnings = 3, kHostnames = 4;
constexpr uint32_t kPlaneId = 1, kPlaneName = 2, kLines = 3, kEventNames = 4, kStatNames = 5, kPlaneStats = 6;

// Reads the fields of a message of any size as they come.
class FieldStream {
 public:
  explicit FieldStream(Input& input) : input_(input) { buffer_.grow(kWindowBytes, 0); }

  struct Field {
    uint32_t id = 0;
    uint8_t wire = 0;
    uint64_t value = 0;  // for kBytes the length; the caller must take or skip as many
  };
  // Reads the next field of a message that ends at `end`; false at its end, and where nothing can be read.
  bool next(int64_t end, Field& field) {
    if (stopped_ || position() >= end) return false;
    // A file may end between two planes; within a plane it was cut.
    if (!have(1)) return end == INT64_MAX ? false : cut();
    uint64_t key = 0;
    if (!varint(key) || key >> 32 != 0 || key >> 3 == 0) return damage();
    field.id = static_cast<uint32_t>(key >> 3);
    field.wire = static_cast<uint8_t>(key & 7);
    switch (field.wire) {
      case ProtoScan::kVarint: return varint(field.value) || damage();
      case ProtoScan::kFixed64: return fixed(8) || damage();
      case ProtoScan::kFixed32: return fixed(4) || damage();
      case ProtoScan::kBytes:
        if (!varint(field.value) || field.value > static_cast<uint64_t>(INT64_MAX) ||
            static_cast<int64_t>(field.value) > end - position())
          return damage();
        return true;
      default: return damage();
    }
  }
  // Appends this number of bytes to `to`; false, with the available ones, when the file ends before.
  bool take(uint64_t length, std::string& to) {
    while (length > 0) {
      if (!have(1)) return cut();
      const size_t some = std::min<uint64_t>(length, end_ - begin_);
      to.append(buffer_.data.get() + begin_, some);
      begin_ += some;
      length -= some;
    }
    return true;
  }
  bool skip(uint64_t length) {
    while (length > 0) {
      if (!have(1)) return cut();
      const size_t some = std::min<uint64_t>(length, end_ - begin_);
      begin_ += some;
      length -= some;
    }
    return true;
  }
  int64_t position() const { return offset_ + static_cast<int64_t>(begin_); }
  bool is_cut() const { return cut_; }
  bool is_damaged() const { return damaged_; }
  std::optional<Error>& error() { return error_; }

 private:
  bool damage() {
    if (cut_) return false;
    damaged_ = stopped_ = true;
    return false;
  }
  bool cut() {
    cut_ = stopped_ = true;
    return false;
  }
  bool have(size_t bytes) {
    while (end_ - begin_ < bytes && !finished_) {
      if (begin_ > 0) {
        std::memmove(buffer_.data.get(), buffer_.data.get() + begin_, end_ - begin_);
        offset_ += static_cast<int64_t>(begin_);
        end_ -= begin_;
        begin_ = 0;
      }
      Result<size_t> got = input_.read(buffer_.data.get() + end_, buffer_.capacity - end_);
      if (!got) error_ = got.error();
      if (!got || *got == 0) finished_ = true;
      else end_ += *got;
    }
    return end_ - begin_ >= bytes;
  }
  bool varint(uint64_t& value) {
    have(10);
    const char *at = buffer_.data.get() + begin_, *from = at;
    if (!ProtoScan::read_varint(at, buffer_.data.get() + end_, value)) return end_ - begin_ < 10 ? cut() : false;
    begin_ += static_cast<size_t>(at - from);
    return true;
  }
  bool fixed(size_t bytes) {
    if (!have(bytes)) return cut();
    begin_ += bytes;
    return true;
  }

  Input& input_;
  detail::WindowBuffer buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t offset_ = 0;
  bool finished_ = false, stopped_ = false, cut_ = false, damaged_ = false;
  std::optional<Error> error_;
};

void append_message(std::string& to, std::string_view message) {
  for (uint64_t length = message.size();; length >>= 7) {
    to += static_cast<char>(length < 128 ? length : (length & 127) | 128);
    if (length < 128) break;
  }
  to += message;
}

// Returns true for a stat that holds bytes, such as a program; it is not drawn.
bool holds_bytes(std::string_view stat) {
  for (ProtoScan scan(stat); scan.next();)
    if ((scan.id == 6 || scan.id == 8) && scan.is_bytes()) return true;
  return false;
}

void read_event_name(std::string_view entry, Plane& plane) {
  int64_t id = 0;
  EventName name;
  for (ProtoScan map(entry); map.next();) {
    if (map.id == 1 && map.wire == ProtoScan::kVarint) id = map.as_signed();
    if (map.id != 2 || !map.is_bytes()) continue;
    for (ProtoScan value(map.bytes); value.next();) {
      if (!value.is_bytes()) continue;
      if (value.id == 2) name.name = valid_utf8(value.bytes);
      if (value.id == 4) name.display_name = valid_utf8(value.bytes);
      if (value.id == 5 && !holds_bytes(value.bytes)) append_message(name.stats, value.bytes);
    }
  }
  plane.events[id] = std::move(name);
}

void read_stat_name(std::string_view entry, Plane& plane) {
  int64_t id = 0;
  std::string name;
  for (ProtoScan map(entry); map.next();) {
    if (map.id == 1 && map.wire == ProtoScan::kVarint) id = map.as_signed();
    if (map.id != 2 || !map.is_bytes()) continue;
    for (ProtoScan value(map.bytes); value.next();)
      if (value.id == 2 && value.is_bytes()) name = valid_utf8(value.bytes);
  }
  plane.stats[id] = std::move(name);
}

std::string operation_key(std::string_view program, std::string_view operation) {
  return std::string(program) + '\n' + std::string(operation);
}

// A field of a message that holds text or a message; empty where it has none.
std::string_view field_of(std::string_view message, uint32_t id) {
  for (ProtoScan scan(message); scan.next();)
    if (scan.id == id && scan.is_bytes()) return scan.bytes;
  return {};
}

// Calls use(bytes) for each of the messages that a field repeats.
template <class Use> void for_each_field(std::string_view message, uint32_t id, const Use& use) {
  for (ProtoScan scan(message); scan.next();)
    if (scan.id == id && scan.is_bytes()) use(scan.bytes);
}

// Reads the opcodes of a program: an entry of the metadata, whose stat holds an HloProto (xla/service/hlo.proto).
void read_program(std::string_view entry, std::unordered_map<std::string, std::string>& opcodes) {
  for_each_field(field_of(entry, 2), 5, [&](std::string_view stat) {
    const std::string_view module = field_of(field_of(stat, 6), 1), program = field_of(module, 1);
    for_each_field(module, 3, [&](std::string_view computation) {
      for_each_field(computation, 2, [&](std::string_view operation) {
        const std::string_view name = field_of(operation, 1), opcode = field_of(operation, 2);
        if (is_xla_collective(opcode, name) || is_xla_transfer(opcode, name))
          opcodes.emplace(operation_key(program, name), valid_utf8(opcode));
      });
    });
  });
}

// Reads one plane from its first field to `end`. With `lines`, what is drawn of it is kept.
void read_plane(FieldStream& in, int64_t end, bool lines, Plane& plane, int64_t& left_out,
                std::unordered_map<std::string, std::string>* opcodes = nullptr) {
  std::string entry;
  FieldStream::Field field;
  while (in.next(end, field)) {
    if (field.wire != ProtoScan::kBytes) {
      if (field.id == kPlaneId) plane.id = field.value;
      continue;
    }
    entry.clear();
    switch (field.id) {
      case kPlaneName:
        if (field.value > kLongestName) break;
        plane.name.clear();
        in.take(field.value, plane.name);
        continue;
      case kLines:
        if (!lines) break;
        if (plane.bytes_.size() + field.value > kMaxPlaneBytes) {
          ++left_out;
          break;
        }
        plane.lines_.emplace_back(plane.bytes_.size(), 0);
        in.take(field.value, plane.bytes_);
        plane.lines_.back().second = plane.bytes_.size() - plane.lines_.back().first;
        continue;
      case kEventNames:
        if (plane.name == "/host:metadata") {
          ++plane.programs;
          if (opcodes == nullptr || field.value > kLongestEntry) break;
          if (in.take(field.value, entry)) read_program(entry, *opcodes);
          continue;
        }
        if (!lines || field.value > kLongestEntry) break;
        if (in.take(field.value, entry)) read_event_name(entry, plane);
        continue;
      case kStatNames:
        if (field.value > kLongestName) break;
        if (in.take(field.value, entry)) read_stat_name(entry, plane);
        continue;
      case kPlaneStats:
        if (field.value > kLongestName || plane.own_stats.size() >= 4096) break;
        if (in.take(field.value, entry)) plane.own_stats.push_back(entry);
        continue;
      default: break;
    }
    in.skip(field.value);
  }
}

template <class OnPlane, class OnText> Status walk(FieldStream& in, const OnPlane& on_plane, const OnText& on_text) {
  FieldStream::Field field;
  while (in.next(INT64_MAX, field)) {
    if (field.wire != ProtoScan::kBytes) continue;
    if (field.id == kPlanes) {
      on_plane(in.position() + static_cast<int64_t>(field.value));
    } else if (field.id <= kHostnames && field.value <= kLongestName) {
      std::string text;
      in.take(field.value, text);
      on_text(field.id, valid_utf8(text));
    } else {
      in.skip(field.value);
    }
  }
  return {};
}

}  // namespace

Stat read_stat(std::string_view message, const std::unordered_map<int64_t, std::string>& names) {
  Stat stat;
  for (ProtoScan scan(message); scan.next();) {
    switch (scan.id) {
      case 1: stat.id = scan.as_signed(); break;
      case 2:
        if (scan.wire == ProtoScan::kFixed64) stat.kind = Stat::kReal, stat.real = scan.as_double();
        break;
      case 3:
      case 4:
        if (scan.wire == ProtoScan::kVarint) stat.kind = Stat::kInteger, stat.integer = scan.as_signed();
        break;
      case 5:
        if (scan.is_bytes()) stat.kind = Stat::kText, stat.text = scan.bytes;
        break;
      case 6:
      case 8: stat.kind = Stat::kBytes; break;
      case 7: {
        if (scan.wire != ProtoScan::kVarint) break;
        const auto at = names.find(scan.as_signed());
        stat.kind = Stat::kText;
        stat.text = at == names.end() ? std::string_view() : std::string_view(at->second);
        break;
      }
      default: break;
    }
  }
  return stat;
}

std::string_view SpaceFacts::opcode(std::string_view program, std::string_view operation) const {
  const auto at = opcodes.empty() ? opcodes.end() : opcodes.find(operation_key(program, operation));
  return at == opcodes.end() ? std::string_view() : std::string_view(at->second);
}

Result<SpaceFacts> read_facts(const std::string& path) {
  TRY(input, Input::open(path));
  SpaceFacts facts;
  FieldStream in(*input);
  const auto on_plane = [&](int64_t end) {
    Plane plane;
    int64_t left_out = 0;
    read_plane(in, end, false, plane, left_out, &facts.opcodes);
    for (const std::string& message : plane.own_stats) {
      const Stat stat = read_stat(message, plane.stats);
      const auto name = plane.stats.find(stat.id);
      if (name == plane.stats.end()) continue;
      if (name->second == "profile_start_time") facts.start_ns = stat.integer;
      if (name->second == "profile_stop_time") facts.stop_ns = stat.integer;
      if (name->second == "process_id") facts.process_id = stat.integer;
      if (plane.name == "/host:metadata" && stat.kind == Stat::kText)
        facts.versions.emplace_back(name->second, valid_utf8(stat.text));
    }
    facts.planes.push_back(valid_utf8(plane.name));
  };
  const auto on_text = [&](uint32_t id, std::string text) {
    std::vector<std::string>& to = id == kErrors ? facts.errors : id == kWarnings ? facts.warnings : facts.hostnames;
    if (to.size() < 64) to.push_back(std::move(text));
  };
  TRY_OK(walk(in, on_plane, on_text));
  if (facts.planes.empty()) {
    if (in.error()) return std::move(*in.error());
    return make_error(ErrorCode::kBadInput, "there is no plane of a profile of XLA in this file", "", {path});
  }
  return facts;
}

Status for_each_plane(const std::string& path, Diagnostics& notes, Progress* progress,
                      const std::function<void(Plane&)>& use) {
  TRY(input, Input::open(path, progress));
  FieldStream in(*input);
  int64_t left_out = 0;
  const auto on_plane = [&](int64_t end) {
    Plane plane;
    read_plane(in, end, true, plane, left_out);
    use(plane);
  };
  TRY_OK(walk(in, on_plane, [](uint32_t, const std::string&) {}));
  notes.add(problem::xplane_huge_plane, {path}, left_out);
  if (in.error())
    notes.add(problem::xplane_damaged, Args().set("why", error_text(*in.error())), {path, 0, in.position()});
  else if (in.is_damaged()) notes.add(problem::xplane_damaged_foreign, {path, 0, in.position()});
  else if (in.is_cut()) notes.add(problem::xplane_truncated, {path, 0, in.position()});
  return {};
}

}  // namespace stageline::xplane
