// Reads the device's counters over time, and the framework's allocations.
#include "readers/ascend/db_rows.h"

namespace stageline::ascend {
namespace {

constexpr size_t kMaxSeries = 4096;

struct CounterTable {
  const char* table;
  const char* label;
  std::array<const char*, 2> keys;  // columns whose values distinguish series; "" for none
  const char* key_enum;  // table with the names of the first key's values; "" means STRING_IDS, if the key is a text
  std::array<const char*, 4> values;  // columns that become series; "" for none
};

// Columns have the vendor's names, and values the vendor's units: bytes, bytes/s, MHz, %; levels have none.
constexpr CounterTable kTables[] = {
#include "readers/ascend/counter_tables.def"
};

bool has_column(const std::vector<std::string>& columns, std::string_view wanted) {
  return std::ranges::any_of(columns, [&](const std::string& c) {
    return c.size() == wanted.size() && sqlite3_strnicmp(c.data(), wanted.data(), static_cast<int>(c.size())) == 0;
  });
}

// Reads the series of one table, in the order in which they first appear.
void read_series(RankDb& rank, const CounterTable& of) {
  const std::vector<std::string> columns = rank.db.columns(of.table);
  const std::string time = has_column(columns, "timestampNs") ? "timestampNs" : "timestamp";
  if (columns.empty() || !has_column(columns, time)) return;
  const auto optional = [](const char* name) { return name[0] == '\0' ? std::string("-?") : std::string(name) + "?"; };
  const std::string names[] = {optional(of.keys[0]),   optional(of.keys[1]),   optional(of.values[0]),
                               optional(of.values[1]), optional(of.values[2]), optional(of.values[3])};
  std::map<std::array<int64_t, 4>, size_t> known;  // (device, keys, value) → index in the part
  std::vector<CounterSeries>& out = rank.out.part.counters;
  const size_t first = out.size();
  const auto series_of = [&](const SqliteRows& rows, size_t value) -> CounterSeries* {
    const std::array<int64_t, 4> key = {rows.integer_or(1, rank.out.part.device), rows.integer_or(2, -1),
                                        rows.integer_or(3, -1), static_cast<int64_t>(value)};
    const auto [it, added] = known.try_emplace(key, out.size());
    if (!added) return it->second < out.size() ? &out[it->second] : nullptr;
    if (out.size() >= kMaxSeries) return nullptr;
    std::string name = "NPU " + std::to_string(key[0]) + " " + of.label;
    if (key[1] >= 0) {
      std::string_view text = of.key_enum[0] != '\0' ? rank.enum_name(of.key_enum, key[1]) : std::string_view();
      const bool is_number = std::string_view(of.keys[0]).ends_with("Id");  // of a port or module, and of no text
      if (text.empty() && !is_number && rank.texts.has(key[1])) text = rank.out.text_of(rank.texts.of(key[1]));
      name += " " + (text.empty() ? std::to_string(key[1]) : std::string(text));
    }
    if (key[2] >= 0) name += " " + std::to_string(key[2]);
    out.push_back({name + " / " + of.values[value], {}, {}});
    return &out.back();
  };
  const bool blocks = std::string_view(of.table) == "NPU_OP_MEM";
  // Such a row has the total before its block was released; older versions name the type by ENUM_MEMORY.
  const auto released = [&](int64_t type) {
    return rank.enum_name("ENUM_MEMORY", type).empty() ? rank.out.text_of(rank.texts.of(type)) == "release" : type == 6;
  };
  rank.scan(of.table, {time, "deviceId?", names[0], names[1], names[2], names[3], names[4], names[5], "type?", "size?"},
            [&](const SqliteRows& rows) {
              const int64_t at = rows.integer_or(0, -1);
              if (at <= 0) return;
              for (size_t v = 0; v < of.values.size(); ++v) {
                if (of.values[v][0] == '\0' || rows.is_null(static_cast<int>(4 + v))) continue;
                CounterSeries* series = series_of(rows, v);
                if (series == nullptr) continue;
                series->time_ns.push_back(at);
                const bool after = blocks && v == 0 && released(rows.integer_or(8, -1));
                series->value.push_back(rows.real(static_cast<int>(4 + v)) - (after ? rows.real(9) : 0));
              }
            });
  for (size_t s = first; s < out.size(); ++s) {
    CounterSeries& series = out[s];
    if (std::ranges::is_sorted(series.time_ns)) continue;
    std::vector<size_t> order(series.time_ns.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    sort_stably(order, [&](size_t a, size_t b) { return series.time_ns[a] < series.time_ns[b]; });
    CounterSeries sorted{series.name, {}, {}};
    for (const size_t i : order) {
      sorted.time_ns.push_back(series.time_ns[i]);
      sorted.value.push_back(series.value[i]);
    }
    series = std::move(sorted);
  }
  // Modules that never reserved anything, and accelerators that never worked, are left out.
  if (const std::string_view table = of.table; table == "NPU_MODULE_MEM" || table == "ACC_PMU")
    out.erase(std::remove_if(
                  out.begin() + first, out.end(),
                  [](const CounterSeries& s) { return std::ranges::all_of(s.value, [](double v) { return v == 0; }); }),
              out.end());
}

// Reads OP_MEMORY: one row per block, with the times of its allocation and release. It has no address, so the row's
// number serves as one.
void read_blocks(RankDb& rank) {
  constexpr int32_t kNpuDevice = 20;  // c10::DeviceType::PrivateUse1
  std::vector<MemoryRecord>& memory = rank.out.part.memory;
  uint64_t block = 0;
  uint32_t lane = UINT32_MAX;
  rank.scan("OP_MEMORY",
            {"size", "allocationTime", "releaseTime?", "allocationTotalAllocated?", "allocationTotalReserved?",
             "releaseTotalAllocated?", "releaseTotalReserved?", "deviceId?"},
            [&](const SqliteRows& rows) {
              ++block;
              if (lane == UINT32_MAX) lane = rank.out.main_thread();
              const int64_t size = std::abs(std::max<int64_t>(rows.integer_or(0, 0), -INT64_MAX));
              MemoryRecord record;
              record.address = block << 9;  // spaced as blocks are
              record.device_type = kNpuDevice;
              record.device_id =
                  static_cast<int32_t>(std::clamp<int64_t>(rows.integer_or(7, rank.out.part.device), -1, 1 << 20));
              record.lane = lane;
              for (const bool freed : {false, true}) {
                const int64_t at = rows.integer_or(freed ? 2 : 1, -1);
                if (at <= 0) continue;
                record.time_ns = at;
                record.bytes = freed ? -size : size;
                record.total_allocated = rows.integer_or(freed ? 5 : 3, -1);
                record.total_reserved = rows.integer_or(freed ? 6 : 4, -1);
                memory.push_back(record);
              }
            });
  sort_stably(memory, {}, &MemoryRecord::time_ns);
  for (uint32_t i = 0; i < memory.size(); ++i) memory[i].file_index = i;
}

}  // namespace

void read_counters(RankDb& rank) {
  for (const CounterTable& table : kTables) read_series(rank, table);
  read_blocks(rank);
}

}  // namespace stageline::ascend
