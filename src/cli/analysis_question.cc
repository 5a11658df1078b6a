#include "base/input.h"
#include "cli/questions.h"

namespace stageline {
std::string hint_for_mode(std::string_view mode) {
  static const std::map<std::string_view, const char*> hints = {
#define MODE(name, hint) {name, hint},
#include "cli/msprof_modes.def"
  };
  return value_at(hints, mode, "");
}

namespace {

Result<const Analysis*> analysis_named(const std::string& name) {
  if (const Analysis* found = find_analysis(name)) return found;
  if (dashed(name).starts_with("get-"))  // the names of HTA's methods
    if (const Analysis* found = find_analysis(name.substr(4))) return found;
  if (std::string hint = hint_for_mode(dashed(name)); !hint.empty())
    return make_error(ErrorCode::kUsage, "no analysis \"" + name + "\"", std::move(hint));
  auto names = mapped<std::string>(analyses(), [&](const Analysis* analysis) { return analysis->name; });
  const std::string near = nearest(dashed(name), names);
  return make_error(ErrorCode::kUsage, "no analysis \"" + name + "\"",
                    near.empty() ? "stageline help analyses lists them" : "did you mean \"" + near + "\"?");
}

const std::vector<std::string_view>& shared_flags() {
  static const std::vector<std::string_view> names = split(
      "table,rows,wide,format,output,range,compat,overlay,reader,ranks,steps,stages,devices,include-last-profiler-step,"
      "pp,tp,dp,order,cells,cell-rules,align,trust-clocks,align-on",
      ',');
  return names;
}

bool contains(const auto& list, const std::string& name) { return std::ranges::find(list, name) != list.end(); }

// Checks that an analysis has this option, and allows the value that was given.
Status check_option(const Arguments& arguments, const std::vector<const Analysis*>& chosen, const std::string& name) {
  bool known = false;
  for (const Analysis* analysis : chosen)
    for (const AnalysisOption& option : analysis->options()) {
      if (name != option.name) continue;
      known = true;
      if (option.choices[0] != '\0' && !contains(split(option.choices, ','), arguments.get(name)))
        return make_error(ErrorCode::kUsage,
                          "--" + name + " is one of " + option.choices + ", not \"" + arguments.get(name) + "\"");
    }
  if (known) return {};
  return make_error(ErrorCode::kUsage, std::string(chosen[0]->name) + " has no option --" + name,
                    std::string("stageline help ") + chosen[0]->name + " lists its options");
}

// Where a command line has the name of a file, analyses take what is in it: they open nothing, and other callers pass
// the text itself.
constexpr size_t kMaxOptionBytes = size_t{16} << 20;
bool is_file(const std::vector<const Analysis*>& chosen, const std::string& name) {
  for (const Analysis* analysis : chosen)
    for (const AnalysisOption& option : analysis->options())
      if (name == option.name) return option.value == "FILE";
  return false;
}

bool is_foreign(const std::string& format) { return format != "text" && format != "csv" && format != "json"; }

}  // namespace

Result<std::vector<const Analysis*>> chosen_analyses(const std::string& list) {
  std::vector<const Analysis*> chosen;
  for (const std::string_view name : split(list, ',')) {
    TRY(one, analysis_named(std::string(trim(name))));
    if (std::ranges::find(chosen, *one) == chosen.end()) chosen.push_back(*one);
  }
  return chosen;
}

Status check_table(const std::vector<const Analysis*>& chosen, const std::string& name) {
  std::string list;
  for (const Analysis* analysis : chosen)
    for (const TableSpec* table : analysis->tables()) {
      if (name == table->name) return {};
      append_item(list, table->name);
    }
  return make_error(ErrorCode::kUsage, std::string(chosen[0]->name) + " has no table \"" + name + "\"",
                    "its tables are " + list);
}

Status check_format(const std::vector<const Analysis*>& chosen, const std::string& format, const std::string& table) {
  if (!is_foreign(format)) return {};
  for (const Analysis* analysis : chosen) {
    if (format == analysis->format) continue;
    std::string hint;
    for (const Analysis* other : analyses())
      if (format == other->format) hint += (hint.empty() ? "of " : ", ") + std::string(other->name);
    return make_error(ErrorCode::kUsage,
                      analysis->name + " has no --format " + format + "; it is text, csv or json" +
                          (analysis->format[0] != '\0' ? std::string(" or ") + analysis->format : ""),
                      hint.empty() ? "" : "--format " + format + " is a form " + hint);
  }
  if (!table.empty())
    return make_error(ErrorCode::kUsage, "--format " + format + " is one text; there is no --table to pick");
  return {};
}

Arguments with_ranks(Arguments arguments, const std::vector<const Analysis*>& chosen) {
  if (!arguments.has("rank") || arguments.has("ranks")) return arguments;
  for (const Analysis* analysis : chosen)
    for (const AnalysisOption& option : analysis->options())
      if (std::string_view(option.name) == "rank") return arguments;
  arguments.set("ranks", arguments.get("rank"));
  arguments.drop("rank");
  return arguments;
}

Result<AnalysisInput> analysis_input(const Arguments& arguments, const std::vector<const Analysis*>& chosen) {
  AnalysisInput input;
  const std::string compat = dashed(arguments.get("compat"));
  for (const Analysis* analysis : chosen) TRY_OK(check_compat(arguments, analysis->compat, analysis->name));
  input.hta = compat == "hta";
  input.msprof = compat == "msprof";
  if (arguments.has("overlay") && (chosen.size() != 1 || !chosen[0]->makes_overlay))
    return make_error(ErrorCode::kUsage, std::string(chosen[0]->name) + " makes no overlay");
  for (const std::string& name : arguments.given()) {
    if (contains(shared_flags(), name) || contains(common_flags(), name)) continue;
    TRY_OK(check_option(arguments, chosen, name));
    std::string value = arguments.get(name);
    if (is_file(chosen, name) && !value.starts_with('{')) TRY_OK(take(read_all(value, kMaxOptionBytes), value));
    input.options.set(name, std::move(value));
  }
  AnalysisOptions last;
  if (arguments.has("include-last-profiler-step"))
    last.set("include-last-profiler-step", arguments.get("include-last-profiler-step"));
  TRY_OK(take(last.flag("include-last-profiler-step", false), input.include_last_step));
  input.foreign = is_foreign(arguments.get("format", "text"));
  return input;
}

}  // namespace stageline
