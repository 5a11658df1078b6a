// The SQL table of figures computes only the figures that a query names ("WHERE name = 'step_period'", "name IN (…)").
#include "engine/figures/figures.h"
#include "sql/run_tables.h"

namespace stageline::sql {
namespace {

constexpr int kNameColumn = 0;
enum Mode : int { kAll, kNamed };

class FigureCursor : public Cursor {
 public:
  explicit FigureCursor(std::shared_ptr<const RunData> data) : data_(std::move(data)) {}

  Status filter(int mode, const std::vector<Pushed>& given) override {
    std::vector<std::string> names;
    rows_.clear();
    at_ = 0;
    if (mode == kNamed) {
      names.emplace_back(text_of(given.front().value));
      const FigureSpec* spec = find_figure(names.front());
      // The stem of a family is the name of no figure, and no row has a name that no figure has.
      if (!spec || (spec->is_family() && names.front() == spec->stem())) return {};
    }
    TRY_OK(take(figures_of(data_->run(), names), rows_));
    return {};
  }
  bool at_end() const override { return at_ >= rows_.size(); }
  void next() override { ++at_; }
  void column(sqlite3_context* out, int column) const override {
    const auto& [spec, figure] = rows_[at_];
    switch (column) {
      case kNameColumn: return show_copy(out, figure.name);
      case 1: return show_real(out, figure.value);
      case 2: return show_text(out, spec->unit);
      case 3: return show_copy(out, base_of(*spec).en);
      case 4: return show_real(out, figure.error);
      case 5: return show_copy(out, definition_of(*spec).en);
      default: return show_copy(out, figure.known() ? "" : figure.why_unknown.en);
    }
  }
  int64_t row_id() const override { return at_; }

 private:
  std::shared_ptr<const RunData> data_;
  std::vector<NamedFigure> rows_;
  size_t at_ = 0;
};

class FigureTable : public TableSource {
 public:
  explicit FigureTable(std::shared_ptr<const RunData> data)
      : TableSource("figures",
                    "Numbers that several outputs show, each with its unit, base and definition; only those "
                    "that a query names are computed."),
        data_(std::move(data)) {}

  Result<std::vector<SqlColumn>> columns() const override { return columns_of(declared_table("run/figures")); }

  void plan(Plan& plan) const override {
    plan.cost = 1e9;
    plan.rows = 100;
    for (Wanted& wanted : plan.wanted) {
      if (wanted.column != kNameColumn || wanted.op != SQLITE_INDEX_CONSTRAINT_EQ || !wanted.usable || !wanted.binary)
        continue;
      wanted.taken = true;
      plan.mode = kNamed;
      plan.cost = 1e6;
      plan.rows = 1;
      return;
    }
  }

  std::unique_ptr<Cursor> open() const override { return std::make_unique<FigureCursor>(data_); }

 private:
  std::shared_ptr<const RunData> data_;
};

}  // namespace

void add_figure_table(const std::shared_ptr<const RunData>& data,
                      std::vector<std::shared_ptr<const TableSource>>& out) {
  out.push_back(std::make_shared<FigureTable>(data));
}

}  // namespace stageline::sql
