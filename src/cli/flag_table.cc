// Commands and flags are declared in words.json of this room: their values and the texts of help, man page and
// completions. A flag that means something special in a command is listed there again, under "own".
#include "analyses/analysis.h"
#include "base/word_files.h"
#include "cli/commands.h"
#include "model/finding.h"

namespace stageline {

const FlagNames& common_flags() {
  static const FlagNames flags = split("lang threads color quiet help", ' ');
  return flags;
}

namespace {

namespace dom = simdjson::dom;

constexpr std::pair<std::string_view, Result<int> (*)(const Arguments&)> kRun[] = {
#define COMMAND(name, run) {name, run},
#include "cli/commands.def"
};

// Returns the text with what only the program knows filled in.
std::string filled(std::string text) {
  const auto findings = [](std::string_view between) {
    std::string out;
    for (const std::string_view id : finding_ids()) out += std::string(id) + std::string(between);
    return out + "any";
  };
  const auto fill = [&](std::string_view place, const auto& made) {
    if (const size_t at = text.find(place); at != std::string::npos) text.replace(at, place.size(), made());
  };
  fill("{recorded}", [] { return STAGELINE_RECORDED; });
  fill("{findings}", [&] { return findings(", "); });
  fill("{findings_list}", [&] { return findings(","); });
  return text;
}

Flag flag_from(std::string_view name, const dom::element& from) {
  return {std::string(name), declared_text(from, 0), filled(declared_text(from, 1)), filled(declared_text(from, 2))};
}

// Makes one flag of an option that several analyses have. Its help reads "operators: …; tb-operator: …" when the option
// means something different in each; when only few analyses have it, the help names them.
Flag shared_option(const std::vector<std::pair<const Analysis*, const AnalysisOption*>>& uses) {
  constexpr size_t kFew = 3;
  const AnalysisOption& first = *uses[0].second;
  std::string help, names, choices;
  bool alike = true, any_text = false;
  for (const auto& [analysis, option] : uses) {
    alike &= std::string_view(option->help) == first.help && std::string_view(option->choices) == first.choices;
    any_text |= option->choices[0] == '\0';
    append_item(names, analysis->name);
    append_item(help, analysis->name + ": " + option->help, "; ");
    for (const std::string_view choice : split(option->choices, ','))
      if (const auto known = split(choices, ','); std::ranges::find(known, choice) == known.end())
        append_item(choices, choice, ",");
  }
  if (alike) help = (uses.size() <= kFew ? names + ": " : "") + first.help;
  return {first.name, first.value, std::move(help), any_text ? "" : std::move(choices)};
}

// Adds the options that analyses declare themselves, each name once.
void add_analysis_flags(std::vector<Flag>& flags) {
  std::vector<std::vector<std::pair<const Analysis*, const AnalysisOption*>>> options;  // for each name
  for (const Analysis* analysis : analyses())
    for (const AnalysisOption& option : analysis->options()) {
      if (std::ranges::any_of(flags, [&](const Flag& f) { return std::string_view(f.name) == option.name; })) continue;
      const auto same = [&](const auto& uses) { return std::string_view(uses[0].second->name) == option.name; };
      auto of_name = std::ranges::find_if(options, same);
      if (of_name == options.end()) of_name = options.emplace(of_name);
      of_name->emplace_back(analysis, &option);
    }
  for (const auto& uses : options) flags.push_back(shared_option(uses));
}

Command command_from(std::string_view name, const dom::element& from) {
  const dom::element operands = from["operands"].value_unsafe();
  Command command = {std::string(name),
                     {declared_text(operands, 0), static_cast<int>(int64_t(operands.at(1))),
                      static_cast<int>(int64_t(operands.at(2)))},
                     declared_text(from, "summary"),
                     filled(declared_text(from, "details")),
                     {},
                     std::ranges::find(kRun, name, [](const auto& one) { return one.first; })->second};
  const auto add_flags = [&](std::string_view names) {
    for (const std::string_view flag : split(names, ' '))
      if (!flag.empty()) command.flags.push_back(flag);
  };
  if (std::string_view flags; !from["flags"].get(flags)) add_flags(flags);
  if (from["opens"].error() == 0)
    add_flags("reader ranks steps pp stages tp cp ep dp order cells cell-rules devices file-ranks max-memory");
  if (dom::object own; !from["own"].get(own))
    for (const auto& [flag, element] : own) command.own_flags.push_back(flag_from(flag, element));
  if (name == "analyze") {
    add_analysis_flags(command.own_flags);
    for (const Flag& own : command.own_flags)
      if (std::ranges::find(command.flags, own.name) == command.flags.end()) command.flags.emplace_back(own.name);
  }
  command.runs_a_program = from["runs_a_program"].error() == 0;
  return command;
}

}  // namespace

const std::vector<Flag>& flag_table() {
  static const std::vector<Flag> table = [] {
    std::vector<Flag> flags;
    for_each_declared("flags",
                      [&](std::string_view name, const dom::element& from) { flags.push_back(flag_from(name, from)); });
    return flags;
  }();
  return table;
}

const std::vector<Command>& command_table() {
  static const std::vector<Command> table = [] {
    std::vector<Command> commands;
    for_each_declared("commands", [&](std::string_view name, const dom::element& from) {
      commands.push_back(command_from(name, from));
    });
    return commands;
  }();
  return table;
}

const Flag& flag_of(const Command& command, std::string_view name) {
  for (const Flag& own : command.own_flags)
    if (own.name == name) return own;
  const auto& table = flag_table();
  return *std::ranges::find(table, name, &Flag::name);
}

const Command* find_command(std::string_view name) {
  const std::string wanted = dashed(name);
  return first_with(command_table(), wanted, &Command::name);
}

}  // namespace stageline
