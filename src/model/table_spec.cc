#include "model/table_spec.h"

#include <cassert>
#include <map>

#include "base/by_enum.h"
#include "base/word_files.h"

namespace stageline {
namespace {

namespace dom = simdjson::dom;

class Declared {
 public:
  Declared() {
    for_each_declared("column_sets",
                      [&](std::string_view name, const dom::element& columns) { sets_.emplace(name, columns); });
    for_each_declared("tables", [&](std::string_view owner, const dom::element& own) {
      for (const auto& [name, table] : dom::object(own)) add(std::string(owner), name, table);
    });
    sets_.clear();
  }

  std::map<std::string, TableSpec, std::less<>> tables;                                // "links/slow-links"
  std::map<std::string, std::vector<const TableSpec*>, std::less<>> without_variants;  // by owner
  std::vector<std::string> flaws;

 private:
  void add(const std::string& owner, std::string_view name, const dom::element& from) {
    const std::string_view plain = name.substr(0, name.find('/'));
    TableSpec spec{std::string(plain),
                   declared_text(from, "title"),
                   declared_text(from, "summary"),
                   {},
                   from["grows"].error() == 0};
    const std::string id = owner + "/" + std::string(name);
    add_columns(id, from["columns"].value_unsafe(), spec.columns);
    if (from["options"].error() == 0) add_columns(id, from["options"].value_unsafe(), spec.options);
    const auto [at, is_new] = tables.emplace(id, std::move(spec));
    if (!is_new) flaws.push_back(at->first + " is declared twice");
    if (plain == name) without_variants[owner].push_back(&at->second);
  }

  void add_columns(const std::string& id, const dom::element& from, std::vector<ColumnSpec>& to) {
    for (const dom::element& item : dom::array(from)) {
      if (std::string_view set; !item.get(set)) {
        const auto known = sets_.find(set);
        if (known == sets_.end())
          flaws.push_back(id + ": no column set is named " + std::string(set));
        else
          add_columns(id, known->second, to);
        continue;
      }
      const std::string type = declared_text(item, 2);
      size_t at = 0;
      while (at < kColumnTypes && column_type_name(static_cast<ColumnType>(at)) != type) ++at;
      if (at == kColumnTypes) flaws.push_back(id + ": no type is named " + type);
      to.push_back(
          {declared_text(item, 0), declared_text(item, 1), static_cast<ColumnType>(at), declared_text(item, 3)});
    }
  }

  static constexpr size_t kColumnTypes = static_cast<size_t>(ColumnType::kRatio) + 1;
  std::map<std::string_view, dom::element> sets_;
};

const Declared& declared() {
  static const Declared all;
  return all;
}

}  // namespace

std::string_view column_type_name(ColumnType type) {
  static constexpr auto kTexts =
      texts_by<ColumnType::kRatio>({"integer", "real", "text", "duration", "time", "share", "ratio"});
  return kTexts[type];
}

const TableSpec& declared_table(std::string_view id, std::string_view variant) {
  const std::string key = std::string(id) + (variant.empty() ? "" : "/") + std::string(variant);
  const auto at = declared().tables.find(key);
  assert(at != declared().tables.end() && "a table that no words.json declares");
  static const TableSpec none;
  return at == declared().tables.end() ? none : at->second;
}

const std::vector<const TableSpec*>& declared_tables(std::string_view owner) {
  static const std::vector<const TableSpec*> none;
  const auto at = declared().without_variants.find(owner);
  return at == declared().without_variants.end() ? none : at->second;
}

const std::vector<std::string>& flaws_of_tables() { return declared().flaws; }

}  // namespace stageline
