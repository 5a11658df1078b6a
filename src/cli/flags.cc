#include "cli/flags.h"

#include "base/remote_file.h"

namespace stageline {
namespace {

std::vector<std::string> flags_of(const Command& command) {
  std::vector<std::string> names(command.flags.begin(), command.flags.end());
  names.insert(names.end(), common_flags().begin(), common_flags().end());
  return names;
}

Error usage(const Command& command, std::string what, std::string hint) {
  if (hint.empty()) hint = std::string("stageline ") + command.name + " --help lists its flags";
  return make_error(ErrorCode::kUsage, std::move(what), std::move(hint));
}

// Returns the long name of a one-letter flag such as "-o".
std::string_view long_name(char letter) {
  switch (letter) {
    case 'o': return "output";
    case 'd': return "profiling-path";
    case 'h': return "help";
    case 'm': return "mode";
    case 'q': return "quiet";
    default: return {};
  }
}

// A flag as it was typed: its long name, and the value that is in the same word.
struct TypedFlag {
  std::string name;
  std::optional<std::string> value;
};

// Splits "--name=value" or "-nvalue", and checks that the command has this flag.
Result<TypedFlag> typed_flag(const Command& command, const std::string& word, const std::vector<std::string>& allowed) {
  TypedFlag flag;
  if (word.starts_with("--")) {
    const size_t equals = word.find('=');
    flag.name = dashed(word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2));
    if (equals != std::string::npos) flag.value = word.substr(equals + 1);
  } else {
    flag.name = long_name(word[1]);
    if (flag.name.empty() ||
        (word[1] != 'o' && word[1] != 'h' && std::ranges::find(allowed, flag.name) == allowed.end()))
      return usage(command, "no flag \"" + word.substr(0, 2) + "\"", "");
    if (word.size() > 2) {
      if (flag_of(command, flag.name).value[0] == '\0') return usage(command, "no flag \"" + word + "\"", "");
      flag.value = word.substr(2);
    }
  }
  if (std::ranges::find(allowed, flag.name) != allowed.end()) return flag;
  const std::string near = nearest(flag.name, allowed);
  return usage(command, "\"" + std::string(command.name) + "\" has no flag --" + flag.name,
               near.empty() ? "" : "did you mean --" + near + "?");
}

Status check_operands(const Command& command, const std::vector<std::string>& operands) {
  const auto count = static_cast<int>(operands.size());
  if (count < command.operands.min)
    return usage(command, std::string("something is missing: stageline ") + command.name + " " + command.operands.text,
                 "");
  if (command.operands.max >= 0 && count > command.operands.max)
    return usage(command,
                 "\"" + operands[command.operands.max] + "\" is one too many: stageline " + command.name + " " +
                     command.operands.text,
                 "");
  return {};
}

}  // namespace

std::string Arguments::get(std::string_view name, std::string_view fallback) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() ? std::string(fallback) : it->second.back();
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() ? std::vector<std::string>() : it->second;
}

std::vector<std::string> Arguments::given() const {
  return mapped<std::string>(values_, [&](const auto& entry) { return entry.first; });
}

Result<int64_t> Arguments::integer(std::string_view name, int64_t fallback, int64_t minimum, int64_t maximum) const {
  if (!has(name)) return fallback;
  const auto value = parse_int(trim(get(name)));
  if (!value || *value < minimum || *value > maximum)
    return usage(*command,
                 "--" + std::string(name) + " must be a whole number from " + std::to_string(minimum) + " to " +
                     std::to_string(maximum) + ", not \"" + get(name) + "\"",
                 "");
  return *value;
}

Result<std::vector<int32_t>> Arguments::numbers(std::string_view name, bool in_order) const {
  std::vector<int32_t> out;
  const std::string list = get(name);
  for (const std::string_view item : in_order ? split(list, ',') : std::vector<std::string_view>{list}) {
    if (!has(name)) break;
    const Result<std::vector<int32_t>> some = parse_number_list(item);
    if (!some) return usage(*command, "--" + std::string(name) + ": " + some.error().what, some.error().hint);
    out.insert(out.end(), some->begin(), some->end());
  }
  return out;
}

Result<double> Arguments::real(std::string_view name, double fallback) const {
  if (!has(name)) return fallback;
  const auto value = parse_double(trim(get(name)));
  if (!value) return usage(*command, "--" + std::string(name) + " must be a number, not \"" + get(name) + "\"", "");
  return *value;
}

Result<std::optional<double>> Arguments::share(std::string_view name) const {
  if (!has(name)) return std::optional<double>();
  const std::string given = get(name);
  std::string_view text = trim(given);
  if (text.ends_with("%")) text = trim(text.substr(0, text.size() - 1));
  const auto value = parse_double(text);
  if (!value || !(*value >= 0 && *value <= 1e6))
    return make_error(ErrorCode::kUsage, "--" + std::string(name) + " takes a share of the step, not \"" + given + "\"",
                      "write --" + std::string(name) + " 3%");
  return std::optional<double>(*value / 100);
}

Result<int64_t> Arguments::bytes(std::string_view name, int64_t fallback) const {
  if (!has(name)) return fallback;
  std::string text = get(name);
  double unit = 1;
  if (const size_t at = text.empty() ? std::string::npos : std::string_view("KMGT").find(text.back() & ~0x20);
      at != std::string::npos) {
    unit = std::pow(1000.0, static_cast<double>(at) + 1);
    text.pop_back();
  }
  const auto value = parse_double(text);
  if (!value || !(*value * unit >= 1 && *value * unit <= 1e18))
    return usage(*command, "--" + std::string(name) + " must be a size such as 512M or 8G, not \"" + get(name) + "\"",
                 "");
  return static_cast<int64_t>(*value * unit);
}

Result<int64_t> Arguments::duration_ns(std::string_view name, int64_t fallback_ns) const {
  if (!has(name)) return fallback_ns;
  const auto value = parse_duration(get(name));
  if (!value)
    return usage(*command,
                 "--" + std::string(name) + " must be a time such as 8, 8ms or 200us, not \"" + get(name) + "\"", "");
  return *value;
}

Result<Arguments> parse_arguments(const Command& command, const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.command = &command;
  const std::vector<std::string> allowed = flags_of(command);
  bool flags_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (flags_ended || word.size() < 2 || word[0] != '-') {
      arguments.operands.push_back(command.runs_a_program ? word : shown_address(word));
      flags_ended |= command.runs_a_program;
      continue;
    }
    if (word == "--") {
      flags_ended = true;
      continue;
    }
    TRY(flag, typed_flag(command, word, allowed));
    auto& [name, value] = *flag;
    const Flag& known = flag_of(command, name);
    if (known.value[0] == '\0') {
      if (value) return usage(command, "--" + name + " takes no value", "");
      arguments.set(name, "");
      continue;
    }
    if (!value && std::string_view(known.value) == kBoolValue) {
      // The flag alone means true; a "true" or "false" after it is its value.
      value = i + 1 < words.size() && (words[i + 1] == "true" || words[i + 1] == "false") ? words[++i] : "true";
    }
    if (!value) {
      if (i + 1 >= words.size() || words[i + 1].starts_with("--"))
        return usage(command, "--" + name + " needs a value: --" + name + " " + known.value, "");
      value = words[++i];
    }
    arguments.set(name, name == "webhook" || name == "otlp" ? *value : shown_address(*value));
  }
  if (!arguments.has("help")) TRY_OK(check_operands(command, arguments.operands));
  return arguments;
}

Status check_choice(const Arguments& arguments, std::string_view name) {
  const std::string choices = arguments.has(name) ? flag_of(*arguments.command, name).choices : "",
                    given = arguments.get(name);
  const auto known = split(choices, ',');
  if (choices.empty() || std::ranges::find(known, given) != known.end()) return {};
  return make_error(ErrorCode::kUsage,
                    "--" + std::string(name) + " is one of " + choices + ", not \"" + valid_utf8(given) + "\"");
}

Status check_choices(const Arguments& arguments) {
  for (const std::string& name : arguments.given()) TRY_OK(check_choice(arguments, name));
  return {};
}

}  // namespace stageline
