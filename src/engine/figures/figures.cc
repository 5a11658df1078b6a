#include "engine/figures/figures.h"

#include "base/json_writer.h"

namespace stageline {

namespace figures {
#define FIGURE(id, ...) std::vector<Figure> id(const SharedRun& run);
#define FAMILY FIGURE
#include "engine/figures/figures.def"
}  // namespace figures

namespace {

using enum FigureCost;

constexpr FigureSpec kFigures[] = {
#define FIGURE(id, unit, cost) {#id, unit, cost, figures::id},
#define FAMILY(id, unit, cost) {#id ".", unit, cost, figures::id},
#include "engine/figures/figures.def"
};

Text words_of(const FigureSpec& spec, const char* part) {
  return words("figure." + std::string(spec.stem()) + "." + part);
}

}  // namespace

Text definition_of(const FigureSpec& spec) { return words_of(spec, "definition"); }
Text base_of(const FigureSpec& spec) { return words_of(spec, "base"); }

const FigureSpec* find_figure(std::string_view name) {
  for (const FigureSpec& spec : kFigures)
    if (name == spec.stem() || (spec.is_family() && name.starts_with(spec.name))) return &spec;
  return nullptr;
}

Status check_figure(std::string_view name) {
  if (find_figure(name)) return {};
  auto known = mapped<std::string>(kFigures, &FigureSpec::stem);
  const std::string near = nearest(name, known);
  return make_error(
      ErrorCode::kUsage, "there is no figure \"" + std::string(name) + "\"",
      near.empty() ? "stageline info PATH --figures all prints them" : "a similar figure exists: " + near);
}

Result<std::vector<NamedFigure>> figures_of(const SharedRun& run, const std::vector<std::string>& names) {
  std::vector<NamedFigure> out;
  const auto add_all = [&](const FigureSpec& spec) {
    std::vector<Figure> made = spec.of(run);
    if (made.empty()) made.push_back({.name = std::string(spec.stem()), .why_unknown = words("figure.no_member")});
    for (Figure& figure : made) out.push_back({&spec, std::move(figure)});
  };
  if (names.empty())
    for (const FigureSpec& spec : kFigures) add_all(spec);
  for (const std::string& name : names) {
    TRY_OK(check_figure(name));
    const FigureSpec* spec = find_figure(name);
    if (name == spec->stem()) {
      add_all(*spec);
      continue;
    }
    std::vector<Figure> members = spec->of(run);
    const auto at = std::ranges::find_if(members, [&](const Figure& f) { return f.name == name; });
    if (at != members.end()) out.push_back({spec, std::move(*at)});
    else out.push_back({spec, {.name = name, .why_unknown = words("figure.no_member")}});
  }
  return out;
}

std::string page_figures_json(const SharedRun& run) {
  std::vector<std::string> names;
  for (const FigureSpec& spec : kFigures)
    if (spec.cost != FigureCost::kAlone) names.emplace_back(spec.stem());
  const Result<std::vector<NamedFigure>> figures = figures_of(run, names);
  // Definitions of parts of bars are added too; some are not figures, such as those of a pipeline's devices.
  JsonWriter json;
  json.begin_object().key("terms").begin_array();
  constexpr std::string_view kBegin = "figure.part.", kEnd = ".definition";
  for (auto at = sentences().lower_bound(kBegin); at != sentences().end() && at->first.starts_with(kBegin); ++at) {
    if (at->first.size() < kBegin.size() + kEnd.size() || !at->first.ends_with(kEnd)) continue;
    const size_t size = at->first.size() - kBegin.size() - kEnd.size();
    json.begin_object().field("id", at->first.substr(kBegin.size(), size));
    json.field("en", at->second.en).field("zh", at->second.zh).end_object();
  }
  json.end_array().key("figures").raw(figures_json(*figures)).end_object();
  return json.take();
}

std::string figures_json(const std::vector<NamedFigure>& figures) {
  JsonWriter json;
  const auto both = [&](const char* key, const Text& text) {
    json.key(key).begin_object().field("en", text.en).field("zh", text.zh).end_object();
  };
  json.begin_array();
  for (const auto& [spec, f] : figures) {
    json.begin_object().field("name", f.name).field("value", f.value).field("unit", spec->unit);
    both("base", base_of(*spec));
    json.field("error", f.error);
    both("definition", definition_of(*spec));
    f.known() ? void(json.key("why_unknown").null()) : both("why_unknown", f.why_unknown);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

}  // namespace stageline
