// The completions of shells, which offer what the flag table and the registries have.
#include <cstdio>

#include "analyses/analysis.h"
#include "cli/commands.h"
#include "cli/help.h"

namespace stageline {
namespace {

std::vector<std::string> flag_words(const Command& command) {
  std::vector<std::string> words;
  for (const std::string_view name : command.flags) words.push_back("--" + std::string(name));
  for (const std::string_view name : common_flags()) words.push_back("--" + std::string(name));
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) append_item(out, word, " ");
  return out;
}

// Returns the words that may be the first operand of a command, if that operand is a name.
std::vector<std::string> operand_words(std::string_view command) {
  std::vector<std::string> words;
  if (command == "analyze")
    for (const HelpItem& item : topic_items("analyses")) words.push_back(item.name);
  if (command == "simulate" || command == "schedule")
    for (const HelpItem& item : topic_items("schedules")) words.push_back(item.name);
  if (command == "completion") words = {"bash", "zsh", "fish"};
  if (command == "help") {
    words = {"readers", "analyses", "exporters", "schedules", "cell-rules"};
    for (const Command& known : command_table()) words.emplace_back(known.name);
    for (const HelpItem& item : topic_items("analyses")) words.push_back(item.name);
  }
  return words;
}

std::vector<std::string> value_words(const Flag& f) {
  std::vector<std::string> words;
  if (f.choices[0] != '\0')
    for (const std::string_view choice : split(f.choices, ',')) words.emplace_back(choice);
  if (std::string_view(f.name) == "reader")
    for (const HelpItem& item : topic_items("readers")) words.push_back(item.name);
  if (std::string_view(f.name) == "to")
    for (const HelpItem& item : topic_items("exporters")) words.push_back(item.name);
  if (std::string_view(f.name) == "table")
    for (const Analysis* analysis : analyses())
      for (const TableSpec* table : analysis->tables()) words.emplace_back(table->name);
  return words;
}

bool takes_files(const Command& command) {
  return std::string_view(command.operands.text).find("PATH") != std::string_view::npos;
}

// Returns every flag once, with the choices that any command gives it.
std::vector<Flag> every_flag() {
  std::vector<Flag> flags = flag_table();
  for (const Command& command : command_table())
    for (const Flag& own : command.own_flags) {
      const auto same =
          std::ranges::find_if(flags, [&](const Flag& f) { return std::string_view(f.name) == own.name; });
      if (same == flags.end()) flags.push_back(own);
      else if (own.choices[0] != '\0' && std::string_view(same->choices).find(own.choices) == std::string_view::npos)
        append_item(same->choices, own.choices, ",");
    }
  return flags;
}

std::string bash_completion() {
  std::string commands;
  for (const Command& command : command_table()) append_item(commands, command.name, " ");
  std::string out =
      "# bash completion for stageline\n_stageline() {\n  local cur=${COMP_WORDS[COMP_CWORD]} "
      "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then COMPREPLY=($(compgen -W \"" +
      commands + "\" -- \"$cur\")); return; fi\n  case $prev in\n";
  // Flags that one command defines for itself come first, with the values that they take there.
  std::vector<std::string> done;
  const auto choose = [&](const Flag& f) {
    const auto words = value_words(f);
    if (words.empty() || std::ranges::find(done, f.name) != done.end()) return;
    done.emplace_back(f.name);
    out +=
        "    --" + std::string(f.name) + ") COMPREPLY=($(compgen -W \"" + join(words) + "\" -- \"$cur\")); return ;;\n";
  };
  for (const Flag& f : every_flag()) choose(f);
  out += "  esac\n  case ${COMP_WORDS[1]} in\n";
  for (const Command& command : command_table())
    out += "    " + std::string(command.name) + ") [[ $cur == -* ]] && COMPREPLY=($(compgen -W \"" +
           join(flag_words(command)) + "\" -- \"$cur\")) || COMPREPLY=($(compgen " +
           (takes_files(command) ? "-f " : "") + "-W \"" + join(operand_words(command.name)) + "\" -- \"$cur\")) ;;\n";
  return out + "  esac\n}\ncomplete -o filenames -F _stageline stageline\n";
}

std::string zsh_completion() {
  std::string out = "#compdef stageline\n# zsh completion for stageline\nautoload -U +X bashcompinit && bashcompinit\n";
  // As a file of $fpath this is the body of the function that the first Tab calls: that Tab has to be answered, too.
  return out + bash_completion() + "[[ ${funcstack[1]} != _stageline ]] || _bash_complete -o filenames -F _stageline\n";
}

std::string quoted_for_fish(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_completion() {
  std::string out = "# fish completion for stageline\n";
  for (const Command& command : command_table())
    out += "complete -c stageline -n __fish_use_subcommand -a " + std::string(command.name) + " -d " +
           quoted_for_fish(command.summary) + "\n";
  for (const Command& command : command_table()) {
    const std::string when = std::string(" -n '__fish_seen_subcommand_from ") + command.name + "'";
    for (const std::string& word : operand_words(command.name))
      out += "complete -c stageline" + when + " -a " + word + "\n";
    FlagNames names = command.flags;
    names.insert(names.end(), common_flags().begin(), common_flags().end());
    for (const std::string_view name : names) {
      const Flag& f = flag_of(command, name);
      out += "complete -c stageline" + when + " -l " + f.name + (f.value[0] != '\0' ? " -r" : "") + " -d " +
             quoted_for_fish(f.help);
      if (const auto words = value_words(f); !words.empty()) out += " -a " + quoted_for_fish(join(words));
      out += "\n";
    }
  }
  return out;
}

}  // namespace

Result<int> run_completion(const Arguments& arguments) {
  const std::string& shell = arguments.operands[0];
  if (shell == "bash") fputs(bash_completion().c_str(), stdout);
  else if (shell == "zsh") fputs(zsh_completion().c_str(), stdout);
  else if (shell == "fish") fputs(fish_completion().c_str(), stdout);
  else return make_error(ErrorCode::kUsage, "no completion for \"" + shell + "\"", "bash, zsh or fish");
  return kExitGood;
}

}  // namespace stageline
