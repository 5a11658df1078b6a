#include "compat/torch_tables/torch_table.h"

#include <cstdio>

namespace stageline::operators {
namespace {

constexpr int64_t kColumnWidth = 12, kGap = 2;

struct Row {  // one line of the table, with times in µs
  const Group* group = nullptr;
  std::string_view name;
  double host = 0, self_host = 0, device = 0, self_device = 0;
  double host_mean() const { return host / group->count; }
  double device_mean() const { return device / group->count; }
};

// ---- text as Python counts it: in code points -------------------------------------------------------------------

bool starts_code_point(char c) { return !continues_character(c); }
int64_t length_of(std::string_view text) { return std::ranges::count_if(text, starts_code_point); }

// Returns the byte at which code point `n` starts.
size_t byte_of(std::string_view text, int64_t n) {
  size_t at = 0;
  while (at < text.size() && (n > 0 || !starts_code_point(text[at])))
    if (starts_code_point(text[at++])) --n;
  return at;
}
std::string_view head(std::string_view text, int64_t n) { return text.substr(0, byte_of(text, n)); }

// Returns text[:limit - 3] + "..." when the text has at least limit - 3 code points.
std::string shortened_name(std::string_view text, int64_t limit) {
  const int64_t keep = limit - 3, length = length_of(text);
  if (length < keep) return std::string(text);
  return std::string(head(text, keep >= 0 ? keep : std::max<int64_t>(0, length + keep))) + "...";
}

// Shortens a path at its beginning, for its end matters more.
std::string shortened_path(std::string_view path, int64_t width) {
  const int64_t length = length_of(path);
  if (length <= width) return std::string(path);
  const std::string_view end = path.substr(byte_of(path, length - width));
  return width > 3 ? "..." + std::string(end.substr(byte_of(end, 3))) : std::string(end);
}

// Prints a number as Python's format does: "-0.000" keeps its sign.
std::string printed(double value, int decimals) {
  char buffer[400];
  const int n = snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
  return {buffer, static_cast<size_t>(n)};
}

std::string time_text(double us, std::string_view unit) {
  const bool s = unit == "s" || (unit.empty() && us >= 1e6), ms = unit == "ms" || (unit.empty() && !s && us >= 1e3);
  if (s) return printed(us / 1e6, 3) + "s";
  return ms ? printed(us / 1e3, 3) + "ms" : printed(us, 3) + "us";
}

std::string share_text(double part, double whole) {
  return whole == 0 ? "NaN" : printed(part * 100.0 / whole, 2) + "%";
}

std::string bytes_text(int64_t bytes, bool old_units) {
  const double size = std::fabs(bytes);
  int power = 0;
  for (double unit = 1024; power < 3 && size >= unit; unit *= 1024) ++power;
  constexpr std::array<const char*, 4> kNew = {"B", "KB", "MB", "GB"}, kOld = {"b", "Kb", "Mb", "Gb"};
  const char* unit = (old_units ? kOld : kNew)[power];
  if (power == 0) return std::to_string(bytes) + " " + unit;
  return printed(bytes / std::pow(1024.0, power), 2) + " " + unit;
}

// ---- columns ----------------------------------------------------------------------------------------------------

struct Column {
  std::string title;
  int64_t width = kColumnWidth;
  bool left = false;
};

class Sheet {
 public:
  void add_column(std::string title, int64_t width = kColumnWidth, bool left = false) {
    columns_.push_back({std::move(title), width, left});
  }
  size_t column_count() const { return columns_.size(); }
  void title_row() {
    auto titles = mapped<std::string>(columns_, &Column::title);
    row(titles);
  }
  void row(const std::vector<std::string>& values) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      const size_t missing = std::max<int64_t>(0, columns_[c].width - length_of(values[c]));
      if (!columns_[c].left) text_.append(missing, ' ');
      text_ += values[c];
      if (columns_[c].left) text_.append(missing, ' ');
      text_.append(kGap, ' ');
    }
    text_ += '\n';
  }
  void separator() {
    for (const Column& column : columns_) text_ += std::string(column.width, '-') + "  ";
    text_ += '\n';
  }
  void rule() {
    int64_t length = -kGap;
    for (const Column& column : columns_) length += column.width + kGap;
    text_ += std::string(std::max<int64_t>(0, length), '=') + "\n";
  }
  void line(std::string_view text) { (text_ += text) += '\n'; }
  std::string take() { return std::move(text_); }

 private:
  std::vector<Column> columns_;
  std::string text_;
};

// Names in a trace may be hostile: no escape sequence may reach the terminal.
std::string harmless(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

// Returns the start of the capture, from which torch counts; the bar of the whole profile gives it.
int64_t capture_start_ns(const Part& part, const Trace& trace) {
  int64_t first = INT64_MAX, bar = INT64_MAX;
  for (size_t i = 0; i < part.slices.size(); ++i) {
    first = std::min(first, part.slices.start_ns[i]);
    if (trace.categories[part.slices.category_id[i]].kind == Category::kSpan)
      bar = std::min(bar, part.slices.start_ns[i]);
  }
  return bar != INT64_MAX ? bar : first;
}

class Printer {
 public:
  Printer(const Part& part, const Trace& trace, const FunctionNames& names, const OperatorGroups& groups,
          const GroupOptions& grouping, const TorchTableOptions& options)
      : part_(part), trace_(trace), names_(names), groups_(groups), grouping_(grouping), options_(options) {}

  std::string print() {
    if (groups_.groups.empty()) return {};
    add_up();
    if (options_.sort != SortKey::kNone) sort(options_.sort);
    choose_columns();
    if (options_.header) {
      sheet_.rule();
      sheet_.line(*options_.header);
    }
    if (options_.top_level_events_only) {
      sheet_.rule();
      sheet_.line("This report only display top-level ops statistics");
    }
    sheet_.separator();
    sheet_.title_row();
    sheet_.separator();
    for (const Row& row : rows_) {
      sum_host_ += row.self_host;
      const FunctionEvent& e = groups_.first_of(*row.group);
      if (e.on_device && e.category != Category::kGpuAnnotation) sum_device_ += row.self_device;
    }
    int64_t printed = 0;
    for (const Row& row : rows_) {
      if (printed == options_.row_limit) break;
      if (options_.top_level_events_only && groups_.first_of(*row.group).parent >= 0) continue;
      ++printed;
      print_row(row);
    }
    sheet_.separator();
    sheet_.line("Self CPU time total: " + time_text(sum_host_, options_.time_unit));
    if (device_time_) sheet_.line("Self " + device_ + " time total: " + time_text(sum_device_, options_.time_unit));
    return sheet_.take();
  }

 private:
  // Adds up every sum in torch's order: children within a call, kernels within a call, events within a group.
  void add_up() {
    const std::vector<FunctionEvent>& events = groups_.made.events;
    const int64_t zero = capture_start_ns(part_, trace_);
    std::vector<double> dur(events.size()), children(events.size(), 0), work(events.size(), 0);
    std::vector<double> below(events.size(), 0), device(events.size(), 0);
    std::vector<uint32_t> device_rows;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const FunctionEvent& e = events[i];
      dur[i] = static_cast<double>(e.end_ns - zero) / 1000 - static_cast<double>(e.start_ns - zero) / 1000;
      if (e.parent >= 0) children[e.parent] += dur[i];
      if (e.owner >= 0) device_rows.push_back(i);
    }
    const auto file_index = [&](uint32_t i) { return part_.slices.file_index[events[i].slice]; };
    std::ranges::sort(device_rows, {}, file_index);
    for (const uint32_t i : device_rows) work[events[i].owner] += dur[i];
    const bool has_device = !options_.use_device.empty();
    add_device_below(work, below, device);
    rows_.resize(groups_.groups.size());
    for (size_t g = 0; g < rows_.size(); ++g) {
      rows_[g].group = &groups_.groups[g];
      rows_[g].name = names_.text(groups_.first_of(groups_.groups[g]).name);
    }
    for (const uint32_t i : groups_.made.in_torch_order(part_)) {
      if (groups_.group_of[i] == OperatorGroups::kNoGroup) continue;
      const FunctionEvent& e = events[i];
      Row& row = rows_[groups_.group_of[i]];
      if (!e.on_device) row.host += dur[i];
      if (!e.on_device && !e.is_async) row.self_host += dur[i] - children[i];
      if (e.is_async || !has_device) continue;
      row.device += e.on_device ? dur[i] : device[i];
      row.self_device += e.on_device ? dur[i] : device[i] - below[i];
    }
  }

  // Children are added to their caller in the order of their starts, each with everything below it. Calls are finished
  // from the last to the first, but a caller sums its own list, so the order of finishing does not affect the sums.
  void add_device_below(const std::vector<double>& work, std::vector<double>& below,
                        std::vector<double>& device) const {
    const std::vector<FunctionEvent>& events = groups_.made.events;
    std::vector<int32_t> first(events.size(), -1), next(events.size(), -1);
    for (size_t i = events.size(); i-- > 0;) {
      for (int32_t c = first[i]; c >= 0; c = next[c]) below[i] += device[c];
      device[i] = work[i] + below[i];
      const int32_t up = events[i].parent;
      if (up < 0) continue;
      next[i] = first[up];
      first[up] = static_cast<int32_t>(i);
    }
  }

  void sort(SortKey key) {
    const auto value = [&](const Row& row) -> double {
      switch (key) {
#define SORT_KEY(key, torch, own, of_group, of_row) \
  case SortKey::key: return of_row;
#include "compat/torch_tables/sort_keys.def"
        default: return 0;
      }
    };
    sort_stably(rows_, [&](const Row& a, const Row& b) {
      return key == SortKey::kName ? a.name > b.name : value(a) > value(b);
    });
  }

  std::vector<std::string_view> stack_of(const Row& row) const {
    if (grouping_.stack_entries == 0) return {};
    return groups_.stacks.entries(row.group->stack, grouping_.stack_entries);
  }

  void choose_columns() {
    device_ = options_.use_device;
    for (char& c : device_) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    int64_t name_width = 0, shapes_width = 0, source_width = 0, min_flops = 0;
    bool device_memory = false;
    for (const Row& row : rows_) {
      name_width = std::max(name_width, length_of(row.name));
      device_time_ |= row.self_device > 0;
      device_memory |= row.group->bytes.self_device > 0;
      overloads_ |= row.group->overload != 0;
      const std::string& shapes = groups_.shapes[row.group->shape];
      shapes_width = std::max(shapes_width, length_of(shapes));
      shapes_ |= shapes.size() > 2;
      for (const std::string_view entry : stack_of(row)) {
        source_width = std::max(source_width, length_of(entry));
        stacks_ = true;
      }
      const int64_t flops = options_.with_flops ? row.group->flops : 0;
      if (flops > 0 && (min_flops == 0 || flops < min_flops)) min_flops = flops;
    }
    name_width = std::min(name_width + 4, options_.max_name_column_width);
    shapes_width_ = std::min(shapes_width + 4, options_.max_shapes_column_width);
    source_width_ = std::min(source_width + 4, options_.max_src_column_width);
    sheet_.add_column("Name", name_width);
    if (overloads_) sheet_.add_column("Overload Name", name_width);
    for (const char* title : {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
      sheet_.add_column(title);
    if (device_time_) {
      sheet_.add_column("Self " + device_);
      sheet_.add_column("Self " + device_ + " %");
      sheet_.add_column(device_ + " total");
      sheet_.add_column(device_ + " time avg");
    }
    device_memory_ = device_memory && !device_.empty();
    if (options_.profile_memory) {
      sheet_.add_column("CPU Mem");
      sheet_.add_column("Self CPU Mem");
      if (device_memory_) sheet_.add_column(device_ + " Mem");
      if (device_memory_) sheet_.add_column("Self " + device_ + " Mem");
    }
    sheet_.add_column("# of Calls");
    if (shapes_) sheet_.add_column("Input Shapes", shapes_width_);
    if (stacks_) sheet_.add_column("Source Location", source_width_, true);
    if (min_flops == 0) return;
    constexpr std::array<const char*, 6> kUnits = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};
    const double power = std::clamp(std::log10(min_flops) / 3, 0.0, 5.0);
    flops_scale_ = std::pow(10.0, std::floor(power) * -3.0);
    sheet_.add_column(std::string("Total ") + kUnits[static_cast<size_t>(power)]);
  }

  void print_row(const Row& row) {
    const Group& group = *row.group;
    const FunctionEvent& first = groups_.first_of(group);
    const auto time = [&](double us) { return time_text(us, options_.time_unit); };
    std::vector<std::string> values = {shortened_name(harmless(row.name), options_.max_name_column_width)};
    if (overloads_)
      values.push_back(shortened_name(harmless(group.overload == 0 ? "" : names_.overload(group.overload)),
                                      options_.max_name_column_width));
    values.push_back(share_text(row.self_host, sum_host_));
    values.push_back(time(row.self_host));
    values.push_back(first.is_async ? "0" : share_text(row.host, sum_host_));
    values.push_back(time(row.host));
    values.push_back(time(row.host_mean()));
    if (device_time_) {
      values.push_back(time(row.self_device));
      values.push_back(share_text(row.self_device, sum_device_));
      values.push_back(time(row.device));
      values.push_back(time(row.device_mean()));
    }
    const auto bytes = [&](int64_t n) { values.push_back(bytes_text(n, options_.old_memory_units)); };
    if (options_.profile_memory) {
      bytes(group.bytes.host);
      bytes(group.bytes.self_host);
      if (device_memory_) bytes(group.bytes.device);
      if (device_memory_) bytes(group.bytes.self_device);
    }
    values.push_back(std::to_string(group.count));
    if (shapes_) values.emplace_back(head(groups_.shapes[group.shape], shapes_width_));
    // Torch writes these two columns in the opposite order to their titles.
    if (flops_scale_ > 0) {
      std::string flops = group.flops <= 0 ? "--" : printed(group.flops * flops_scale_, 3);
      if (group.flops > 0 && flops.size() < 8) flops.insert(0, 8 - flops.size(), ' ');
      values.push_back(std::move(flops));
    }
    const std::vector<std::string_view> stack = stack_of(row);
    if (stacks_) values.push_back(stack.empty() ? "" : shortened_path(harmless(stack[0]), source_width_));
    sheet_.row(values);
    if (!stacks_) return;
    std::vector<std::string> further(sheet_.column_count());
    for (size_t k = 1; k < stack.size(); ++k) {
      further.back() = shortened_path(harmless(stack[k]), source_width_);
      sheet_.row(further);
    }
    further.back().clear();
    sheet_.row(further);
  }

  const Part& part_;
  const Trace& trace_;
  const FunctionNames& names_;
  const OperatorGroups& groups_;
  const GroupOptions& grouping_;
  const TorchTableOptions& options_;
  std::vector<Row> rows_;
  Sheet sheet_;
  std::string device_;
  bool device_time_ = false, device_memory_ = false, overloads_ = false, shapes_ = false, stacks_ = false;
  int64_t shapes_width_ = 0, source_width_ = 0;
  double flops_scale_ = 0, sum_host_ = 0, sum_device_ = 0;
};

}  // namespace

std::string torch_table(const Part& part, const Trace& trace, const FunctionNames& names, const OperatorGroups& groups,
                        const GroupOptions& grouping, const TorchTableOptions& options) {
  return Printer(part, trace, names, groups, grouping, options).print();
}

}  // namespace stageline::operators
