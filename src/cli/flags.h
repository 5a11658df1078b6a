// The one table of commands and flags. Parsing, help, man page and shell completions all use it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

inline constexpr std::string_view kBoolValue = "BOOL";  // placeholder of flags that may stand without a value

struct Flag {
  std::string name;     // without dashes
  std::string value;    // placeholder: "DIR"; "" for a switch
  std::string help;     // one sentence
  std::string choices;  // comma list for completion and checking
};

struct Operands {
  std::string text;  // "PATH…"
  int min, max;      // −1: any number
};

using FlagNames = std::vector<std::string_view>;

class Arguments;
struct Command {
  std::string name;
  Operands operands;
  std::string summary;  // one line
  std::string details;  // paragraphs for --help and the man page
  FlagNames flags;
  // Returns the exit code. The error, if any, is printed by the caller.
  Result<int> (*run)(const Arguments& arguments);
  // Flags that mean something special in this command, with their placeholder, help and choices.
  std::vector<Flag> own_flags;
  // The first operand is a program, and everything after it belongs to that program, also flags.
  bool runs_a_program = false;
};

const std::vector<Flag>& flag_table();
const std::vector<Command>& command_table();
const Command* find_command(std::string_view name);
// Returns a flag as this command defines it.
const Flag& flag_of(const Command& command, std::string_view name);
// Flags that every command takes.
const FlagNames& common_flags();

class Arguments {
 public:
  const Command* command = nullptr;
  std::vector<std::string> operands;

  bool has(std::string_view name) const { return values_.count(std::string(name)) > 0; }
  // Returns the last value given, or `fallback`.
  std::string get(std::string_view name, std::string_view fallback = "") const;
  std::vector<std::string> all(std::string_view name) const;
  // Names of the flags that were given.
  std::vector<std::string> given() const;
  void set(std::string_view name, std::string value) { values_[std::string(name)].push_back(std::move(value)); }

  void drop(std::string_view name) { values_.erase(std::string(name)); }

  // Returns the value as a whole number within [least, most]. Errors: kUsage naming the flag.
  Result<int64_t> integer(std::string_view name, int64_t fallback, int64_t minimum, int64_t maximum) const;
  // Puts the same into `into`, which stays as it is when the flag was not given.
  template <class T> Status take(std::string_view name, int64_t minimum, int64_t maximum, T& into) const {
    TRY(value, integer(name, static_cast<int64_t>(into), minimum, maximum));
    into = static_cast<T>(*value);
    return {};
  }
  // Returns ranks or devices as parse_number_list() reads them, or in the order in which they were given; none when the
  // flag was not given. Errors: kUsage naming the flag.
  Result<std::vector<int32_t>> numbers(std::string_view name, bool in_order = false) const;
  Result<double> real(std::string_view name, double fallback) const;
  // Returns a share of the step: "3%" and "3" are 0.03. Returns nullopt when it was not given. Errors: kUsage.
  Result<std::optional<double>> share(std::string_view name) const;
  // Returns a size such as 512M or 8G, in units of 1000. Errors: kUsage.
  Result<int64_t> bytes(std::string_view name, int64_t fallback) const;
  // Returns a time. A number without a unit is in milliseconds. Errors: kUsage.
  Result<int64_t> duration_ns(std::string_view name, int64_t fallback_ns) const;

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

// Parses what follows the command's name. Flags accept `_` for `-`, `--flag=value` and
// `--flag value`; `--` ends them. Errors: kUsage with the nearest flag.
Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words);
// Errors: kUsage for a given flag with choices whose value is none of them.
Status check_choice(const Arguments& a, std::string_view name);
// The same for all flags that are given.
Status check_choices(const Arguments& arguments);

}  // namespace stageline
