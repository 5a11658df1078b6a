#include "model/table.h"

#include <mutex>

#include "base/word_files.h"

namespace stageline {
namespace {

size_t storage_of(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger:
    case ColumnType::kDuration:
    case ColumnType::kTime: return 0;
    case ColumnType::kReal:
    case ColumnType::kShare:
    case ColumnType::kRatio: return 1;
    case ColumnType::kText: return 2;
  }
  return 0;
}

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
        if (known == sets_.end()) flaws.push_back(id + ": no column set is named " + std::string(set));
        else add_columns(id, known->second, to);
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

int64_t whole_ns(double ns) { return std::isfinite(ns) ? std::llround(std::clamp(ns, -4e18, 4e18)) : kNullInteger; }

Table::Table(std::string name, std::string title, std::vector<ColumnSpec> columns)
    : name_(std::move(name)), title_(std::move(title)), specs_(std::move(columns)) {
  for (const ColumnSpec& spec : specs_) {
    switch (storage_of(spec.type)) {
      case 0: data_.emplace_back(std::vector<int64_t>()); break;
      case 1: data_.emplace_back(std::vector<double>()); break;
      default: data_.emplace_back(std::vector<std::string>()); break;
    }
  }
}

Table::Table(TableSpec spec) : Table(std::move(spec.name), std::move(spec.title), std::move(spec.columns)) {}

struct Table::Later {
  MakeRows make;
  std::once_flag once;
  Table whole;
};

Table Table::later(Table head, size_t row_count, MakeRows make) {
  assert(head.row_count_ == 0 && !head.later_);
  head.row_count_ = row_count;
  head.later_ = std::make_shared<Later>();
  head.later_->make = std::move(make);
  return head;
}

Table Table::rows(size_t first, size_t count) const {
  assert(later_ && first <= row_count_ && count <= row_count_ - first);
  Table out(name_, title_, specs_);
  later_->make(first, count, out);
  assert(out.row_count_ == count);
  return out;
}

const Table& Table::whole() const {
  std::call_once(later_->once, [&] { later_->whole = rows(0, row_count_); });
  return later_->whole;
}

void Table::add_row(std::vector<Value> values) {
  assert(!later_);
  assert(values.size() == specs_.size());
  for (size_t c = 0; c < values.size(); ++c) {
    if (Text* both = std::get_if<Text>(&values[c])) {
      std::string english = valid_utf8(both->en);
      if (!both->zh.empty()) chinese_.try_emplace(english, std::move(both->zh));
      values[c] = std::move(english);
    }
    assert(values[c].index() == storage_of(specs_[c].type));
    switch (data_[c].index()) {
      case 0: std::get<0>(data_[c]).push_back(std::get<0>(values[c])); break;
      case 1: std::get<1>(data_[c]).push_back(std::get<1>(values[c])); break;
      default: std::get<2>(data_[c]).push_back(valid_utf8(std::get<2>(values[c]))); break;
    }
  }
  ++row_count_;
}

std::string_view Table::chinese(const std::string& english) const {
  const auto& known = later_ ? whole().chinese_ : chinese_;
  const auto at = known.find(english);
  return at == known.end() ? std::string_view() : at->second;
}

bool Table::is_null(size_t row, size_t column) const {
  switch (data_[column].index()) {
    case 0: return integer(row, column) == kNullInteger;
    case 1: return std::isnan(real(row, column));
    default: return false;
  }
}

int Table::column_index(std::string_view name) const {
  for (size_t c = 0; c < specs_.size(); ++c)
    if (specs_[c].name == name) return static_cast<int>(c);
  return -1;
}

std::string Table::raw_text(size_t row, size_t column) const {
  if (is_null(row, column)) return {};
  switch (data_[column].index()) {
    case 0: return std::to_string(integer(row, column));
    case 1: return json_double(real(row, column));
    default: return text(row, column);
  }
}

constexpr double kLargeReal = 1e6;  // decimals of larger numbers are not shown

std::string Table::shown_text(size_t row, size_t column) const {
  if (is_null(row, column)) return "–";
  switch (specs_[column].type) {
    case ColumnType::kInteger: return std::to_string(integer(row, column));
    case ColumnType::kDuration:
    case ColumnType::kTime: return fixed(integer(row, column) / 1e6, 3);
    case ColumnType::kReal: return fixed(real(row, column), std::abs(real(row, column)) < kLargeReal ? 3 : 0);
    case ColumnType::kShare: return fixed(real(row, column) * 100, 1);
    case ColumnType::kRatio: return fixed(real(row, column), 2);
    case ColumnType::kText: return text(row, column);
  }
  return {};
}

std::string_view raw_unit(ColumnType type) {
  return type == ColumnType::kDuration || type == ColumnType::kTime ? "ns" : "";
}

std::string_view shown_unit(ColumnType type) {
  switch (type) {
    case ColumnType::kDuration:
    case ColumnType::kTime: return "ms";
    case ColumnType::kShare: return "%";
    case ColumnType::kRatio: return "×";
    default: return "";
  }
}

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
