#include "base/parallel.h"
#include "model/statistics.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

struct Sums {
  // `nested_ns`: time of the slices nested in them.
  int64_t count = 0, total_ns = 0, nested_ns = 0, min_ns = INT64_MAX, max_ns = INT64_MIN;
  void add(int64_t ns) {
    ++count;
    total_ns = sum_or_limit(total_ns, ns);
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
  }
  void take(int64_t ns) { nested_ns = sum_or_limit(nested_ns, ns); }
  int64_t self_ns() const { return std::max<int64_t>(0, between_ns(nested_ns, total_ns)); }
  void merge(const Sums& other) {
    count += other.count;
    total_ns = sum_or_limit(total_ns, other.total_ns);
    nested_ns = sum_or_limit(nested_ns, other.nested_ns);
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
  }
};

enum class By : uint8_t { kName, kOpName, kClass, kCategory, kRank, kStep, kStream, kStage, kKind };
constexpr std::pair<const char*, By> kBys[] = {
    {"name", By::kName},         {"op_name", By::kOpName}, {"class", By::kClass},
    {"category", By::kCategory}, {"rank", By::kRank},      {"step", By::kStep},
    {"stream", By::kStream},     {"stage", By::kStage},    {"kind", By::kKind}};

struct Asked {
  By by = By::kName;
  std::optional<int64_t> rank, step;
  std::optional<std::string> kernel_class, category;
  int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
};

// Slices are added up in pieces of ranks, each by its own thread; then the pieces' sums are joined.
constexpr size_t kRowsOfAPiece = size_t{1} << 20;
constexpr int64_t kNoKey = INT64_MIN;

// The key is what the asker sees: a name, a step's number … With names it also contains the class: name · 8 + class.
struct KeySums {
  int64_t key = kNoKey;
  Sums sums;
};

// Adds up one rank's slices, or some rows of it. The group of a slice has a small number, its code. Names, categories
// and the like are numbered densely in every rank, so the group is found in a table.
class Adder {
 public:
  Adder(const RunData& data, size_t p, const Asked& asked)
      : data_(data), part_(data.trace().parts[p]), s_(part_.slices), p_(p), asked_(asked),
        facts_(!s_.category_id.empty()),
        filter_(asked.step || asked.kernel_class || asked.from_ns != INT64_MIN || asked.to_ns != INT64_MAX
                    ? Filter::kAny
                : asked.category && facts_ ? Filter::kCategory
                : asked.category           ? Filter::kAny
                                           : Filter::kNone) {
    const std::vector<CategoryInfo>& categories = data.trace().categories;
    for (size_t c = 0; c < categories.size() && c < device_.size(); ++c) {
      device_[c] = is_device_work(categories[c].kind);
      wanted_[c] = !asked.category || categories[c].text == *asked.category;
    }
  }

  // Adds up entries [begin, end) of the chosen rows, or of all.
  std::vector<KeySums> add(size_t begin, size_t end) {
    first_.assign(codes(), kNone);
    if (const std::vector<uint32_t>* rows = data_.chosen_rows(p_))
      add_rows(begin, end, [rows](size_t r) -> size_t { return (*rows)[r]; });
    else add_rows(begin, end, [](size_t r) { return r; });
    return std::move(sums_);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class Filter : uint8_t { kNone, kCategory, kAny };  // what rows have to pass; a category alone is found at once

  size_t codes() const {
    switch (asked_.by) {
      case By::kName: return data_.trace().names.size();
      case By::kOpName: return data_.trace().names.size() + 1;
      case By::kClass:
      case By::kCategory: return 256;
      case By::kStep: return part_.steps.size() + 1;
      case By::kStream: return std::max<size_t>(1, part_.streams.size());
      default: return 1;
    }
  }
  bool is_device(size_t i) const { return facts_ && device_[s_.category_id[i]]; }
  // Host waits for a device have a class of their own, but are not device work.
  KernelClass class_of(size_t i) const { return is_device(i) ? s_.class_of(i) : KernelClass::kNone; }

  size_t code_of(size_t i) const {
    switch (asked_.by) {
      case By::kName: return s_.name_id[i];
      case By::kOpName:
        return s_.parent.empty() || s_.parent[i] == kNoSliceIndex || !is_device(i)
                   ? 0
                   : s_.name_id[s_.parent[i]] + size_t{1};
      case By::kClass: return static_cast<size_t>(class_of(i));
      case By::kCategory: return facts_ ? s_.category_id[i] : 0;
      case By::kStep: return s_.step.empty() ? 0 : s_.step[i];
      case By::kStream: return s_.stream_id.empty() ? 0 : s_.stream_id[i];
      default: return 0;
    }
  }
  int64_t key_of(size_t code, KernelClass kernel_class) const {
    switch (asked_.by) {
      case By::kName: return static_cast<int64_t>(code) * 8 + static_cast<int64_t>(kernel_class);
      case By::kOpName: return code == 0 ? kNoKey : static_cast<int64_t>(code) - 1;
      case By::kClass: return code;
      case By::kCategory: return facts_ ? static_cast<int64_t>(code) : kNoKey;
      case By::kRank: return part_.rank;
      case By::kStep: return code == 0 ? kNoKey : part_.steps[code - 1].number;
      case By::kStream: return code == 0 ? kNoKey : part_.streams[code];
      case By::kStage:
      case By::kKind: break;  // keys of cells, not of slices
    }
    return kNoKey;
  }

  template <Filter filter> bool passes(size_t i) const {
    if (filter == Filter::kNone) return true;
    if (filter == Filter::kCategory) return wanted_[s_.category_id[i]];
    if (asked_.category && (!facts_ || !wanted_[s_.category_id[i]])) return false;
    if (asked_.kernel_class && kernel_class_name(class_of(i)) != *asked_.kernel_class) return false;
    if (asked_.step && (s_.step.empty() || s_.step[i] == 0 || part_.steps[s_.step[i] - 1u].number != *asked_.step))
      return false;
    if (asked_.from_ns != INT64_MIN || asked_.to_ns != INT64_MAX) {
      const int64_t at = data_.time_ns(p_, s_.start_ns[i]);
      if (at < asked_.from_ns || at >= asked_.to_ns) return false;
    }
    return true;
  }

  // A name nearly always has one class, whose group is found through the table; groups of further classes are in a map.
  template <By by> Sums& group(size_t i) {
    const size_t code = by == By::kName ? s_.name_id[i] : code_of(i);
    const KernelClass kernel_class = by == By::kName ? class_of(i) : KernelClass::kNone;
    uint32_t& place = first_[code];
    if (place == kNone) [[unlikely]] {
      place = static_cast<uint32_t>(sums_.size());
      sums_.push_back({key_of(code, kernel_class), {}});
    }
    KeySums& known = sums_[place];
    if (by != By::kName || (known.key & 7) == static_cast<int64_t>(kernel_class)) [[likely]]
      return known.sums;
    const auto [other, is_new] = others_.try_emplace(key_of(code, kernel_class), static_cast<uint32_t>(sums_.size()));
    if (is_new) sums_.push_back({other->first, {}});
    return sums_[other->second].sums;
  }

  template <class RowAt> void add_rows(size_t begin, size_t end, RowAt row_at) {
    if (asked_.by == By::kName && filter_ == Filter::kNone) add_all<By::kName, Filter::kNone>(begin, end, row_at);
    else if (asked_.by == By::kName && filter_ == Filter::kCategory)
      add_all<By::kName, Filter::kCategory>(begin, end, row_at);
    else if (asked_.by == By::kName) add_all<By::kName, Filter::kAny>(begin, end, row_at);
    else add_all<By::kRank, Filter::kAny>(begin, end, row_at);
  }

  template <By by, Filter filter, class RowAt> void add_all(size_t begin, size_t end, RowAt row_at) {
    if (begin == end) return;
    const bool nests = !s_.parent.empty();
    size_t lane = data_.lane_of(p_, row_at(begin));
    const std::vector<Lane>& lanes = part_.lanes;
    for (size_t r = begin; r < end; ++r) {
      const size_t i = row_at(r);
      const int64_t dur = s_.dur_ns[i];
      if (passes<filter>(i)) group<by>(i).add(dur);
      if (!nests) continue;
      // A slice's time is not its parent's own time.
      const uint32_t parent = s_.parent[i];
      if (parent == kNoSliceIndex || is_device(i)) continue;
      while (lane + 1 < lanes.size() && i >= lanes[lane].end) ++lane;
      if (parent < lanes[lane].begin || parent >= lanes[lane].end || !passes<filter>(parent)) continue;
      group<by>(parent).take(dur);
    }
  }

  const RunData& data_;
  const Part& part_;
  const Slices& s_;
  const size_t p_;
  const Asked& asked_;
  const bool facts_;
  const Filter filter_;
  std::array<bool, 256> device_{}, wanted_{};
  std::vector<uint32_t> first_;                   // for each code its place in sums_
  std::unordered_map<int64_t, uint32_t> others_;  // by key; for names with a second class
  std::vector<KeySums> sums_;
};

struct Total {
  int64_t key;
  KernelClass kernel_class;
  Sums sums;
};
// Cells do not nest, so all their time is self time.
std::vector<Total> totals_of_cells(const RunData& data, const Asked& asked) {
  const Trace& trace = data.trace();
  const Cells& cells = trace.cells;
  std::map<int64_t, Sums> all;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t p = cells.part[i];
    const Part& part = trace.parts[p];
    if ((asked.rank && part.rank != *asked.rank) || (asked.step && cells.step[i] != *asked.step)) continue;
    if (asked.from_ns != INT64_MIN || asked.to_ns != INT64_MAX) {
      const int64_t at = data.time_ns(p, cells.start_ns[i]);
      if (at < asked.from_ns || at >= asked.to_ns) continue;
    }
    const int64_t stage = part.stage == kUnknown ? kNoKey : part.stage;
    all[asked.by == By::kKind ? static_cast<int64_t>(cells.kind[i]) : stage].add(cells.dur_ns(i));
  }
  std::vector<Total> out;
  for (const auto& [key, sums] : all) out.push_back({key, KernelClass::kNone, sums});
  return out;
}

std::vector<Total> totals_of(const RunData& data, const Asked& asked) {
  const Trace& trace = data.trace();
  if (asked.by == By::kStage || asked.by == By::kKind) return totals_of_cells(data, asked);
  struct Piece {
    size_t part, begin, end;
  };
  std::vector<Piece> pieces;
  for (size_t p = 0; p < trace.parts.size(); ++p) {
    if (!data.has_part(p) || (asked.rank && trace.parts[p].rank != *asked.rank)) continue;
    const std::vector<uint32_t>* const rows = data.chosen_rows(p);
    const size_t count = rows ? rows->size() : trace.parts[p].slices.size();
    for (size_t begin = 0; begin < count; begin += kRowsOfAPiece)
      pieces.push_back({p, begin, std::min(count, begin + kRowsOfAPiece)});
  }
  std::vector<std::vector<KeySums>> made(pieces.size());
  parallel_for(pieces.size(),
               [&](size_t i) { made[i] = Adder(data, pieces[i].part, asked).add(pieces[i].begin, pieces[i].end); });
  std::unordered_map<int64_t, Sums> merged;
  for (const std::vector<KeySums>& piece : made)
    for (const KeySums& one : piece) merged[one.key].merge(one.sums);
  std::vector<std::pair<int64_t, Sums>> all(merged.begin(), merged.end());
  sort_stably(all, {}, [](const auto& of) { return of.first; });
  std::vector<Total> out;
  for (const auto& [key, sums] : all) {
    if (sums.count == 0) continue;
    if (asked.by == By::kName) out.push_back({key / 8, static_cast<KernelClass>(key % 8), sums});
    else out.push_back({key, asked.by == By::kClass ? static_cast<KernelClass>(key) : KernelClass::kNone, sums});
  }
  return out;
}

// The totals with keys as SQL shows them: a text, or a number as text.
Table totals_table(const RunData& data, const Asked& asked) {
  Table table(declared_table("sql/totals"));
  const Trace& trace = data.trace();
  for (const Total& t : totals_of(data, asked)) {
    std::string key;
    if (t.key != kNoKey) switch (asked.by) {
        case By::kName:
        case By::kOpName: key = trace.names.text(static_cast<StringId>(t.key)); break;
        case By::kClass: key = kernel_class_name(static_cast<KernelClass>(t.key)); break;
        case By::kKind: key = kind_code(static_cast<CellKind>(t.key)); break;
        case By::kCategory: key = trace.categories[t.key].text; break;
        default: key = std::to_string(t.key);
      }
    table.add_row({key, std::string(kernel_class_name(t.kernel_class)), t.sums.count, t.sums.total_ns, t.sums.self_ns(),
                   t.sums.min_ns, t.sums.max_ns, share_of(t.sums.total_ns, t.sums.count)});
  }
  return table;
}

Table names_table(const RunData& data) {
  Table table(declared_table("sql/names"));
  std::map<int64_t, Sums> by_name;
  for (const Total& t : totals_of(data, {})) by_name[t.key].merge(t.sums);
  for (const auto& [name, sums] : by_name)
    table.add_row({name, std::string(data.trace().names.text(static_cast<StringId>(name))), sums.count, sums.total_ns,
                   sums.self_ns(), sums.min_ns, sums.max_ns});
  return table;
}

Result<Asked> asked_of(const std::vector<Argument>& arguments) {
  Asked asked;
  auto names = mapped<std::string>(kBys, [&](const auto& entry) { return entry.first; });
  const std::string by = std::holds_alternative<std::monostate>(arguments[0]) ? "name" : argument_text(arguments[0]);
  const auto found = std::ranges::find(names, by);
  if (found == names.end()) {
    const std::string near = nearest(by, names);
    return make_error(ErrorCode::kUsage, "totals() does not add up by \"" + by + "\"",
                      near.empty()
                          ? "it does by name, op_name, class, category, rank, step, stream; of cells by stage and kind"
                          : "did you mean " + near + "?");
  }
  asked.by = kBys[found - names.begin()].second;
  const auto number = [&](size_t i) -> std::optional<int64_t> {
    if (const auto* value = std::get_if<int64_t>(&arguments[i])) return *value;
    return parse_int(argument_text(arguments[i]));
  };
  for (const size_t i : {1, 2, 5, 6})
    if (!std::holds_alternative<std::monostate>(arguments[i]) && !number(i))
      return make_error(ErrorCode::kUsage, "totals() takes whole numbers for ranks, steps and times, not \"" +
                                               argument_text(arguments[i]) + "\"");
  const bool of_cells = asked.by == By::kStage || asked.by == By::kKind;
  for (const size_t i : {3, 4})
    if (of_cells && !std::holds_alternative<std::monostate>(arguments[i]))
      return make_error(ErrorCode::kUsage,
                        "totals() by " + by + " adds up cells, which have neither class nor category",
                        "leave out of_class and of_category");
  asked.rank = number(1);
  asked.step = number(2);
  if (is_given(arguments[3])) asked.kernel_class = argument_text(arguments[3]);
  if (is_given(arguments[4])) asked.category = argument_text(arguments[4]);
  asked.from_ns = number(5).value_or(INT64_MIN);
  asked.to_ns = number(6).value_or(INT64_MAX);
  return asked;
}

RunData::Made totals(const RunData& data, const std::vector<Argument>& arguments) {
  TRY(asked, asked_of(arguments));
  return table_rows(totals_table(data, *asked));
}

}  // namespace

void add_totals(const std::shared_ptr<const RunData>& data, std::vector<std::shared_ptr<const TableSource>>& out) {
  out.push_back(table_function(data, "totals", totals));
  out.push_back(run_table(data, "names", names_table));
}

}  // namespace stageline::sql
