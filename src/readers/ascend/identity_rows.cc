// Reads what a rank says about itself: metadata, host, device, groups.
#include "base/input.h"
#include "base/json_members.h"
#include "base/json_writer.h"
#include "readers/ascend/db_rows.h"
#include "readers/ascend/problems.h"

namespace stageline::ascend {
namespace {

constexpr size_t kMaxMetadata = 4096;
constexpr size_t kMaxFileBytes = size_t{1} << 24;

// Removes one level of JSON, since profiler.add_metadata() stores a JSON text inside a JSON text.
std::string unwrapped(std::string_view value) {
  const std::string_view text = trim(value);
  if (!text.starts_with("\"")) return std::string(value);
  std::string inner = json_text(text);
  const std::string_view looks = trim(inner);
  return looks.starts_with("{") || looks.starts_with("[") ? inner : std::string(value);
}

// META_DATA contains plain words ("1.2.0") as well as JSON, but MetaField needs JSON.
std::string as_json(std::string_view value) {
  const std::string text = unwrapped(value);
  const std::string_view looks = trim(text);
  if (looks.starts_with("{") || looks.starts_with("[") || looks.starts_with("\"")) return text;
  if (!looks.empty() && looks.find_first_not_of("0123456789") == std::string_view::npos && looks.size() < 19 &&
      (looks.size() == 1 || looks[0] != '0'))
    return std::string(looks);
  if (looks == "true" || looks == "false" || looks == "null") return std::string(looks);
  return json_quoted(text);
}

bool has_field(const Part& part, std::string_view key) {
  return std::ranges::any_of(part.metadata, [&](const MetaField& field) { return field.key == key; });
}

void read_groups(std::string_view json, std::map<std::string, CommGroup>& groups) {
  for (const JsonMember& member : json_members(json, kMaxMetadata)) {
    CommGroup group;
    group.description = json_text(json_member(member.value, "group_name"));
    group.own_rank = static_cast<int32_t>(json_integer(json_member(member.value, "group_rank")).value_or(-1));
    bool good = true;
    for (const JsonMember& rank : json_members(json_member(member.value, "global_ranks"), 1u << 20)) {
      const auto number = json_integer(rank.value);
      good &= number && *number >= 0 && *number <= INT32_MAX;
      if (good) group.ranks.push_back(static_cast<int32_t>(*number));
    }
    if (good && !group.ranks.empty()) groups.emplace(json_text("\"" + std::string(member.key) + "\""), group);
  }
}

void read_metadata(RankDb& rank) {
  Part& part = rank.out.part;
  rank.scan("META_DATA", {"name", "value"}, [&](const SqliteRows& rows) {
    if (part.metadata.size() < kMaxMetadata)
      part.metadata.push_back({std::string(rows.text(0)), as_json(rows.text(1))});
  });
  if (!rank.files.profiler_metadata.empty()) {
    const std::string text = read_head(rank.files.profiler_metadata, kMaxFileBytes);
    for (const JsonMember& member : json_members(text, kMaxMetadata))
      if (!has_field(part, member.key) && part.metadata.size() < kMaxMetadata)
        part.metadata.push_back({std::string(member.key), unwrapped(member.value)});
  }
  if (!rank.files.profiler_info.empty())
    if (std::string text = read_head(rank.files.profiler_info, kMaxFileBytes); trim(text).starts_with("{"))
      part.metadata.push_back({"profiler_info", std::move(text)});
  if (!rank.files.device_info.empty()) {
    const std::string text = read_head(rank.files.device_info, kMaxFileBytes);
    if (const std::string_view devices = json_member(text, "DeviceInfo"); !devices.empty())
      part.metadata.push_back({"DeviceInfo", std::string(devices)});
  }
  for (const MetaField& field : part.metadata)
    if (field.key == "SCHEMA_VERSION" && !json_text(field.json).starts_with("1."))
      rank.out.notes.add(problem::ascend_unknown_schema, Args().set("version", json_text(field.json)),
                         {rank.db.path()});
  for (const MetaField& field : part.metadata)
    if (field.key == "parallel_group_info") read_groups(field.json, rank.groups);
}

}  // namespace

void read_identity(RankDb& rank) {
  Part& part = rank.out.part;
  read_metadata(rank);
  rank.scan("HOST_INFO", {"hostUid?", "hostName"}, [&](const SqliteRows& rows) {
    if (part.machine_name.empty()) part.machine_name = std::string(rows.text(1));
  });
  int64_t only = -1, own = -1, devices = 0;
  rank.scan("RANK_DEVICE_MAP", {"rankId", "deviceId"}, [&](const SqliteRows& rows) {
    const int64_t device = rows.integer_or(1, -1);
    if (rows.integer_or(0, -1) == part.rank && own < 0) own = device;
    only = device;
    ++devices;
  });
  const int64_t device = own >= 0 ? own : devices == 1 ? only : -1;
  if (device >= 0 && device <= INT32_MAX) part.device = static_cast<int32_t>(device);
  // NPUs by number, in the form in which Kineto lists devices.
  std::string devices_json;
  rank.scan("NPU_INFO", {"id", "name"}, [&](const SqliteRows& rows) {
    if (devices_json.size() > 65536) return;
    devices_json += (devices_json.empty() ? "[" : ", ") + ("{\"id\": " + std::to_string(rows.integer(0))) +
                    ", \"name\": " + json_quoted(rows.text(1)) + "}";
  });
  if (!devices_json.empty()) part.metadata.push_back({"deviceProperties", devices_json + "]"});
  if (part.device == kUnknown)
    rank.scan("NPU_INFO", {"id"}, [&](const SqliteRows& rows) {
      const int64_t id = rows.integer_or(0, -1);
      if (part.device == kUnknown && id >= 0 && id <= INT32_MAX) part.device = static_cast<int32_t>(id);
    });
}

void read_steps(RankDb& rank) {
  const int64_t before = rank.out.part.event_count;
  rank.scan("STEP_TIME", {"id", "startNs", "endNs"}, [&](const SqliteRows& rows) {
    int64_t start = 0, end = 0;
    if (rank.times(rows, 1, start, end) && rows.type(0) != SQLITE_NULL) rank.out.step(rows.integer(0), start, end);
    else rank.out.notes.add(problem::ascend_bad_step, {rank.db.path()});
  });
  if (rank.out.part.event_count == before) rank.out.notes.add(problem::ascend_no_steps, {rank.db.path()});
}

}  // namespace stageline::ascend
