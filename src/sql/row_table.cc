#include "sql/row_table.h"

namespace stageline::sql {
namespace {

class RowCursor : public Cursor {
 public:
  RowCursor(std::vector<SqlColumn> columns, RowTable::Make make)
      : columns_(std::move(columns)), make_(std::move(make)) {
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].is_option) options_.push_back(static_cast<int>(c));
  }

  Status filter(int mode, const std::vector<Pushed>& given) override {
    std::vector<Argument> arguments(options_.size());
    list_ = nullptr;
    at_ = end_ = 0;
    for (const Pushed& p : given) {
      const auto option = std::ranges::find(options_, p.column);
      if (option == options_.end()) continue;
      Argument& argument = arguments[option - options_.begin()];
      switch (sqlite3_value_type(p.value)) {
        case SQLITE_NULL: break;
        case SQLITE_INTEGER: argument = sqlite3_value_int64(p.value); break;
        default: argument = std::string(text_of(p.value));
      }
    }
    // The same list serves all rows of a join; it is made again only where the arguments differ.
    if (!rows_ || arguments != arguments_) {
      TRY_OK(take(make_(arguments), rows_));
      arguments_ = std::move(arguments);
    }
    end_ = rows_->size();
    if (mode > 0) {  // mode − 1 is the index of the value that is looked up
      const Pushed& key = given[static_cast<size_t>(mode) - 1];
      const std::optional<int64_t> wanted = integer_of(key.value);
      if (!wanted || *wanted == kNullInteger) {
        end_ = 0;
        return {};
      }
      const Rows::Found found = rows_->equal(key.column, *wanted);
      list_ = found.list;
      at_ = found.begin;
      end_ = found.end;
    }
    return {};
  }
  bool at_end() const override { return at_ >= end_; }
  void next() override { ++at_; }
  void column(sqlite3_context* out, int column) const override {
    const auto option = std::ranges::find(options_, column);
    if (option == options_.end()) return rows_->show(out, row(), column);
    const Argument& argument = arguments_[option - options_.begin()];
    if (const auto* number = std::get_if<int64_t>(&argument)) return sqlite3_result_int64(out, *number);
    if (const auto* text = std::get_if<std::string>(&argument)) return show_copy(out, *text);
    sqlite3_result_null(out);
  }
  int64_t row_id() const override { return row(); }

 private:
  size_t row() const { return list_ ? (*list_)[at_] : at_; }

  std::vector<SqlColumn> columns_;
  RowTable::Make make_;
  std::vector<int> options_;
  std::vector<Argument> arguments_;
  std::shared_ptr<const Rows> rows_;
  const std::vector<uint32_t>* list_ = nullptr;
  size_t at_ = 0, end_ = 0;
};

class TableRows : public Rows {
 public:
  TableRows(Table table, std::vector<int> columns) : table_(std::move(table)), columns_(std::move(columns)) {
    if (!columns_.empty()) return;
    columns_ = indexes<int>(table_.columns().size());
  }
  size_t size() const override { return table_.row_count(); }
  void show(sqlite3_context* out, size_t row, int column) const override {
    const int c = columns_[column];
    if (c < 0) return sqlite3_result_error(out, "with these options the answer has no such column", -1);
    if (table_.is_null(row, c)) return sqlite3_result_null(out);
    switch (table_.column(c).index()) {
      case 0: return sqlite3_result_int64(out, table_.integer(row, c));
      case 1: return sqlite3_result_double(out, table_.real(row, c));
      default: return show_text(out, table_.text(row, c));
    }
  }
  int64_t integer(size_t row, int column) const override {
    const int c = columns_[column];
    return c < 0 || table_.column(c).index() != 0 ? kNullInteger : table_.integer(row, c);
  }

 private:
  Table table_;
  std::vector<int> columns_;
};

}  // namespace

Rows::Found Rows::equal(int column, int64_t value) const {
  const std::vector<uint32_t>* order = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const size_t place = column;
    if (orders_.size() <= place) orders_.resize(place + 1);
    if (!orders_[place]) {
      auto made = std::make_unique<std::vector<uint32_t>>(size());
      std::iota(made->begin(), made->end(), 0u);
      std::stable_sort(made->begin(), made->end(),
                       [&](uint32_t a, uint32_t b) { return integer(a, column) < integer(b, column); });
      orders_[place] = std::move(made);
    }
    order = orders_[place].get();
  }
  const auto below =
      std::partition_point(order->begin(), order->end(), [&](uint32_t row) { return integer(row, column) < value; });
  const auto above =
      std::partition_point(below, order->end(), [&](uint32_t row) { return integer(row, column) <= value; });
  return {order, static_cast<size_t>(below - order->begin()), static_cast<size_t>(above - order->begin())};
}

std::string argument_text(const Argument& argument) {
  if (const auto* number = std::get_if<int64_t>(&argument)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&argument)) return *text;
  return {};
}

RowTable::RowTable(std::string name, std::string help, std::vector<SqlColumn> columns, Make make)
    : TableSource(std::move(name), std::move(help)), columns_(std::move(columns)), make_(std::move(make)) {}

void plan_rows(const std::vector<SqlColumn>& columns, Plan& plan) {
  Wanted* key = nullptr;
  for (Wanted& w : plan.wanted) {
    if (w.op != SQLITE_INDEX_CONSTRAINT_EQ || w.column < 0) continue;
    const SqlColumn& column = columns[w.column];
    if (column.is_option) {
      // The argument comes from a row of another table, so that table must be read first.
      if (!w.usable) plan.impossible = true;
      w.taken = w.exact = w.usable;
      continue;
    }
    // An id finds one row, while a rank or step finds many.
    const bool better = !key || (columns[key->column].name != "id" && column.name == "id");
    if (w.usable && column.type == SqlType::kInteger && better) key = &w;
  }
  plan.cost = 100'000;
  plan.rows = 100'000;
  if (!key) return;
  key->taken = true;
  plan.mode = 1 + static_cast<int>(std::count_if(plan.wanted.data(), key, [](const Wanted& w) { return w.taken; }));
  plan.cost = columns[key->column].name == "id" ? 10 : 1000;
  plan.rows = columns[key->column].name == "id" ? 1 : 1000;
}

void RowTable::plan(Plan& plan) const { plan_rows(columns_, plan); }

std::unique_ptr<Cursor> row_cursor(const std::vector<SqlColumn>& columns, RowTable::Make make) {
  return std::make_unique<RowCursor>(columns, std::move(make));
}

std::unique_ptr<Cursor> RowTable::open() const { return row_cursor(columns_, make_); }

std::shared_ptr<const Rows> table_rows(Table table, std::vector<int> columns) {
  return std::make_shared<TableRows>(std::move(table), std::move(columns));
}

std::vector<SqlColumn> columns_of(const Table& table) {
  std::vector<SqlColumn> columns;
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const ColumnSpec& spec = table.columns()[c];
    const size_t storage = table.column(c).index();
    std::string name = spec.name;
    for (int again = 2; std::ranges::any_of(
             columns, [&](const SqlColumn& known) { return sqlite3_stricmp(known.name.c_str(), name.c_str()) == 0; });
         ++again)
      name = spec.name + "_" + std::to_string(again);
    columns.push_back({name,
                       storage == 0   ? SqlType::kInteger
                       : storage == 1 ? SqlType::kReal
                                      : SqlType::kText,
                       std::string(raw_unit(spec.type)), spec.help, false});
  }
  return columns;
}

std::vector<SqlColumn> columns_of(const TableSpec& spec) {
  std::vector<SqlColumn> columns = columns_of(Table(spec));
  TableSpec options;
  options.columns = spec.options;
  for (SqlColumn& option : columns_of(Table(options))) {
    option.is_option = true;
    columns.push_back(std::move(option));
  }
  return columns;
}

}  // namespace stageline::sql
