// Decides which SELECTs may use sums (slice_sums.h). A statement is read word by word, and left as it is at the first
// word that may mean something else over sums. These forms are accepted:
//
//   SELECT terms FROM slices|kernels [[AS] alias] [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]
//     sums        count(*), and count, sum, avg, min, max of a number or of a column that groups can be made by
//     else        columns that are grouped by, or terms that GROUP BY itself has, in functions of one row and operators
//     conditions  of such columns any; of numbers and ids "column op whole number" and BETWEEN, joined by AND alone
//
// The result is the same statement with its aggregates written over sums; the names of its columns stay what they would
// be.
#include <cctype>

#include "sql/slice_sums.h"
#include "sql/tokens.h"

namespace stageline::sql {
namespace {

const std::set<std::string, std::less<>>& keywords() {
  static const std::set<std::string, std::less<>> words = {
      "and",  "or",  "not", "null", "is",   "in",    "like", "glob",      "regexp", "between", "case", "when", "then",
      "else", "end", "asc", "desc", "over", "nulls", "last", "partition", "by",     "order",   "true", "false"};
  return words;
}
const std::set<std::string, std::less<>>& clauses() {
  static const std::set<std::string, std::less<>> words = {"where", "group", "having", "order", "limit"};
  return words;
}
// Functions that use the values of one row only.
const std::set<std::string, std::less<>>& plain_functions() {
  static const std::set<std::string, std::less<>> names = {
      "ms",    "pretty", "short_name", "round", "coalesce", "ifnull", "nullif",  "abs",    "upper",
      "lower", "length", "substr",     "trim",  "replace",  "iif",    "matches", "printf", "format"};
  return names;
}

// A range of tokens, [begin, end).
struct Range {
  size_t begin, end;
};
// A change of the text: [begin, end) is replaced.
struct Edit {
  size_t begin, end;
  std::string text;
};

// One SELECT, from that word on. Every step returns false where the SELECT has to be left to SQLite.
class Block {
 public:
  Block(std::string_view sql, const std::vector<Token>& tokens, Range range, bool is_leg)
      : sql_(sql), tokens_(tokens), range_(range), is_leg_(is_leg) {}

  bool read() {
    constexpr size_t kMaxItems = 200;  // SQLite takes no more columns
    if (!find_clauses() || items_.size() > kMaxItems) return false;
    for (const Range& item : items_)
      if (!name_item(item)) return false;
    if (!read_groups()) return false;
    for (const Range& item : items_)
      if (!read_term(expression_of(item), true)) return false;
    if (having_ && (!group_ || !read_term(*having_, true))) return false;
    if (order_)
      for (const Range& term : parted(*order_))
        if (!read_term(without_direction(term), true)) return false;
    if (limit_ && !is_plain(*limit_)) return false;
    if (where_ && !read_conditions()) return false;
    if (!any_sum_ && !group_) return false;
    name_sums();
    name_table();
    return true;
  }
  const std::vector<Edit>& edits() const { return edits_; }

 private:
  const Token& at(size_t i) const { return tokens_[i]; }
  bool is(size_t i, std::string_view text) const { return i < range_.end && tokens_[i].text == text; }
  bool is_word(size_t i, std::string_view text) const { return is(i, text) && tokens_[i].kind == TokenKind::kWord; }

  const SliceColumnSpec* column(std::string_view name) const {
    for (const SliceColumnSpec& spec : *specs_)
      if (spec.column.name == name) return &spec;
    return nullptr;
  }
  // The column that begins at token `i`, with or without its table before it; sets `end` to the token after it.
  const SliceColumnSpec* column_at(size_t i, size_t last, size_t& end) const {
    if (i >= last || at(i).kind != TokenKind::kWord) return nullptr;
    if (i + 2 < last && is(i + 1, ".")) {
      if (at(i).text != alias_ || at(i + 2).kind != TokenKind::kWord) return nullptr;
      end = i + 3;
      return column(at(i + 2).text);
    }
    end = i + 1;
    return column(at(i).text);
  }

  std::vector<Range> parted(Range range) const {
    std::vector<Range> out;
    size_t begin = range.begin;
    int depth = 0;
    for (size_t i = range.begin; i < range.end; ++i) {
      if (is(i, "(")) ++depth;
      if (is(i, ")")) --depth;
      if (depth != 0 || !is(i, ",") || at(i).kind != TokenKind::kSign) continue;
      out.push_back({begin, i});
      begin = i + 1;
    }
    out.push_back({begin, range.end});
    return out;
  }

  bool find_clauses() {
    size_t from = range_.begin + 1;
    int depth = 0;
    for (; from < range_.end && (depth > 0 || !is_word(from, "from")); ++from) depth += is(from, "(") - is(from, ")");
    if (from + 1 >= range_.end) return false;
    const std::string& table = at(from + 1).text;
    if (at(from + 1).kind != TokenKind::kWord || (table != "slices" && table != "kernels")) return false;
    specs_ = table == "slices" ? &slice_column_specs() : &kernel_column_specs();
    table_ = alias_ = table;
    table_token_ = from + 1;
    items_ = parted({range_.begin + 1, from});
    size_t i = from + 2;
    if (is_word(i, "as")) ++i;
    if (i < range_.end && at(i).kind == TokenKind::kWord && !clauses().count(at(i).text)) {
      if (keywords().count(at(i).text) || column(at(i).text)) return false;
      alias_ = at(i++).text;
      has_alias_ = true;
    }
    while (i < range_.end) {
      const std::string& clause = at(i).text;
      if (at(i).kind != TokenKind::kWord || !clauses().count(clause)) return false;
      size_t begin = i + 1;
      if (clause == "group" || clause == "order") {
        if (!is_word(begin, "by")) return false;
        ++begin;
      }
      size_t end = begin;
      for (depth = 0; end < range_.end; ++end) {
        depth += is(end, "(") - is(end, ")");
        if (depth == 0 && at(end).kind == TokenKind::kWord && clauses().count(at(end).text)) break;
      }
      if (begin == end) return false;
      std::optional<Range>& place = clause == "where"    ? where_
                                    : clause == "group"  ? group_
                                    : clause == "having" ? having_
                                    : clause == "order"  ? order_
                                                         : limit_;
      if (place || (is_leg_ && (clause == "order" || clause == "limit"))) return false;
      place = Range{begin, end};
      i = end;
    }
    return true;
  }

  // "expression [AS] name"
  bool name_item(Range item) {
    if (item.begin >= item.end) return false;
    size_t end = 0;
    if (item.end - item.begin >= 3 && is_word(item.end - 2, "as")) {
      end = item.end - 2;
    } else if (const Token& last = at(item.end - 1);
               item.end - item.begin >= 2 && last.kind == TokenKind::kWord && !keywords().count(last.text) &&
               (is(item.end - 2, ")") || at(item.end - 2).kind == TokenKind::kWord)) {
      end = item.end - 1;
    }
    if (end == 0) {
      expressions_[item.begin] = item.end;
      return true;
    }
    const Token& name = at(item.end - 1);
    if (name.kind != TokenKind::kWord || keywords().count(name.text)) return false;
    // A name that also is a column would be resolved by rules of SQLite that are not followed here.
    size_t after = 0;
    const SliceColumnSpec* same = column_at(item.begin, end, after);
    if (column(name.text) && !(same && after == end && same->column.name == name.text)) return false;
    expressions_[item.begin] = end;
    names_.emplace(name.text, item);
    return true;
  }
  Range expression_of(Range item) const { return {item.begin, expressions_.at(item.begin)}; }

  Range without_direction(Range term) const {
    while (term.end > term.begin) {
      const std::string_view last = at(term.end - 1).text;
      bool is_direction = false;
      for (const char* word : {"asc", "desc", "nulls", "first", "last"}) is_direction = is_direction || last == word;
      if (at(term.end - 1).kind != TokenKind::kWord || !is_direction) break;
      --term.end;
    }
    return term;
  }

  std::string normal(Range range) const {
    std::string out;
    for (size_t i = range.begin; i < range.end;) {
      size_t end = 0;
      if (const SliceColumnSpec* one = column_at(i, range.end, end)) {
        out += one->column.name + " ";
        i = end;
      } else {
        out += at(i++).text + " ";
      }
    }
    return out;
  }

  bool read_groups() {
    if (!group_) return true;
    for (Range term : parted(*group_)) {
      if (term.begin >= term.end) return false;
      bool named = false;
      if (term.end - term.begin == 1) {
        const Token& token = at(term.begin);
        if (token.kind == TokenKind::kNumber) {
          size_t place = 0;
          for (const char digit : token.text) {
            if (!std::isdigit(static_cast<unsigned char>(digit)) || place > 1000) return false;
            place = place * 10 + (digit - '0');
          }
          if (place == 0 || place > items_.size()) return false;
          term = expression_of(items_[place - 1]);
          named = true;
        } else if (const auto known = names_.find(token.text);
                   token.kind == TokenKind::kWord && known != names_.end()) {
          if (!column(token.text)) term = expression_of(known->second);
          named = true;
        }
      }
      size_t end = 0;
      const SliceColumnSpec* one = column_at(term.begin, term.end, end);
      if (one && end == term.end) {
        if (!use_key(*one)) return false;
        grouped_.insert(one->column.name);
        continue;
      }
      // Its columns make the groups; nothing in it is aggregated.
      reading_groups_ = true;
      const bool fine = named ? walk(term, false) : walk(term, true);
      reading_groups_ = false;
      if (!fine) return false;
      terms_.insert(normal(term));
    }
    return true;
  }

  bool use_key(const SliceColumnSpec& spec) {
    if (!is_key(spec.field)) return false;
    keys_.insert(spec.column.name);
    return true;
  }

  bool read_term(Range range, bool edit) {
    if (range.begin >= range.end) return false;
    if (terms_.count(normal(range))) return true;
    return walk(range, edit);
  }

  // Reads an expression outside WHERE.
  bool walk(Range range, bool edit) {
    for (size_t i = range.begin; i < range.end;) {
      const Token& token = at(i);
      if (token.kind == TokenKind::kOther) return false;
      if (token.kind != TokenKind::kWord) {
        if (token.text == "*" && (i == range.begin || is(i - 1, ".") || is(i - 1, "(") || is(i - 1, ","))) return false;
        if (token.text == ".") return false;
        ++i;
        continue;
      }
      if (i + 1 < range.end && is(i + 1, "(") && !keywords().count(token.text)) {
        size_t after = 0;
        if (!reading_groups_ && is_sum(i, range.end, after, edit)) {
          i = after;
          continue;
        }
        if (!may_call(i, range.end)) return false;
        ++i;
        continue;
      }
      size_t end = 0;
      if (const SliceColumnSpec* one = column_at(i, range.end, end)) {
        if (reading_groups_ ? !use_key(*one) : !grouped_.count(one->column.name)) return false;
        i = end;
        continue;
      }
      if (!keywords().count(token.text) && !(names_.count(token.text) && !reading_groups_)) return false;
      ++i;
    }
    return true;
  }

  size_t close_of(size_t open, size_t last) const {
    int depth = 0;
    for (size_t i = open; i < last; ++i) {
      depth += is(i, "(") - is(i, ")");
      if (depth == 0) return i;
    }
    return last;
  }

  // Returns true if a function may stay as it is: it works on one row, or over the rows of the result.
  bool may_call(size_t i, size_t last) const {
    const size_t close = close_of(i + 1, last);
    if (is_word(close + 1, "over")) return !reading_groups_;
    if (is_word(close + 1, "filter")) return false;
    if (plain_functions().count(at(i).text)) return true;
    if (at(i).text != "min" && at(i).text != "max") return false;
    return parted({i + 2, close}).size() > 1;
  }

  // Returns true at count(*), sum(dur_ns) …; with `edit` it is rewritten over sums.
  bool is_sum(size_t i, size_t last, size_t& after, bool edit) {
    const std::string& name = at(i).text;
    const size_t close = close_of(i + 1, last);
    if (close >= last || is_word(close + 1, "over") || is_word(close + 1, "filter")) return false;
    std::string reported;
    size_t end = 0;
    const SliceColumnSpec* one = column_at(i + 2, close, end);
    if (name == "count" && close == i + 3 && (is(i + 2, "*") || is(i + 2, "1"))) {
      reported = "ifnull(sum(aggregate_count), 0)";
    } else if (one && end == close && is_number(one->field)) {
      const std::string& number = one->column.name;
      if (name == "count") reported = "ifnull(sum(aggregate_known_" + number + "), 0)";
      else if (name == "sum") reported = "sum(aggregate_sum_" + number + ")";
      else if (name == "avg")
        reported = "(1.0 * sum(aggregate_sum_" + number + ") / sum(aggregate_known_" + number + "))";
      else if (name == "min" || name == "max") reported = name + "(aggregate_" + name + "_" + number + ")";
      else return false;
      numbers_.insert(number);
    } else if (one && end == close && is_key(one->field) && (name == "count" || name == "min" || name == "max")) {
      keys_.insert(one->column.name);
      reported = name == "count" ? "ifnull(sum(aggregate_count * (" + one->column.name + " IS NOT NULL)), 0)"
                                 : name + "(" + one->column.name + ")";
    } else {
      return false;
    }
    if (edit) edits_.push_back({at(i).begin, at(close).end, std::move(reported)});
    any_sum_ = true;
    after = close + 1;
    return true;
  }

  bool is_plain(Range range) const {
    for (size_t i = range.begin; i < range.end; ++i)
      if (at(i).kind != TokenKind::kNumber && at(i).kind != TokenKind::kParameter && !is(i, ",") && !is(i, "-") &&
          !is_word(i, "offset"))
        return false;
    return true;
  }

  // Returns true for a number or a parameter at `i`; moves `i` behind it.
  bool is_whole(size_t& i) const {
    if (is(i, "-")) ++i;
    if (i >= where_->end) return false;
    const Token& token = at(i++);
    if (token.kind == TokenKind::kParameter) return true;
    return token.kind == TokenKind::kNumber && token.text.find_first_not_of("0123456789") == std::string::npos;
  }

  bool read_conditions() {
    bool only_and = true, any_plain = false;
    for (size_t i = where_->begin; i < where_->end; ++i)
      for (const char* word : {"or", "not", "case"}) only_and = only_and && !is_word(i, word);
    for (size_t i = where_->begin; i < where_->end;) {
      const Token& token = at(i);
      if (token.kind == TokenKind::kOther) return false;
      if (token.kind != TokenKind::kWord) {
        if (token.text == "." || token.text == "*") return false;
        ++i;
        continue;
      }
      if (i + 1 < where_->end && is(i + 1, "(") && !keywords().count(token.text)) {
        if (!plain_functions().count(token.text)) return false;
        ++i;
        continue;
      }
      size_t end = 0;
      const SliceColumnSpec* one = column_at(i, where_->end, end);
      if (!one) {
        if (!keywords().count(token.text)) return false;
        ++i;
        continue;
      }
      if (is_key(one->field)) {
        keys_.insert(one->column.name);
        i = end;
        continue;
      }
      any_plain = true;
      if (i != where_->begin && !is_word(i - 1, "and")) return false;
      i = end;
      if (is_word(i, "between")) {
        ++i;
        if (!is_whole(i) || !is_word(i, "and")) return false;
        ++i;
      } else {
        bool compares = false;
        for (const char* sign : {"=", "==", "<", "<=", ">", ">="}) compares = compares || is(i, sign);
        if (!compares) return false;
        ++i;
      }
      if (!is_whole(i) || (i < where_->end && !is_word(i, "and"))) return false;
    }
    return only_and || !any_plain;
  }

  // Names each rewritten column as SQLite would have named it: by its original words.
  void name_sums() {
    for (const Range& item : items_) {
      const Range expression = expression_of(item);
      if (expression.end != item.end) continue;
      const size_t begin = at(item.begin).begin, end = at(item.end - 1).end;
      const bool changed =
          std::ranges::any_of(edits_, [&](const Edit& edit) { return edit.begin >= begin && edit.end <= end; });
      if (!changed) continue;
      std::string quoted;
      for (const char c : sql_.substr(begin, end - begin)) quoted += c == '"' ? "\"\"" : std::string(1, c);
      edits_.push_back({end, end, " AS \"" + quoted + "\""});
    }
  }

  void name_table() {
    const auto list = [](const std::set<std::string>& names) {
      std::string out;
      for (const std::string& name : names) append_item(out, name, ",");
      return out;
    };
    const Token& table = at(table_token_);
    edits_.push_back({table.begin, table.end,
                      table_ + "_aggregated('" + list(keys_) + "', '" + list(numbers_) + "')" +
                          (has_alias_ ? "" : " AS " + table_)});
  }

  const std::string_view sql_;
  const std::vector<Token>& tokens_;
  const Range range_;
  const bool is_leg_;  // a leg of UNION and the like, where ORDER BY orders all legs
  const std::vector<SliceColumnSpec>* specs_ = nullptr;
  std::string table_, alias_;
  size_t table_token_ = 0;
  bool has_alias_ = false, any_sum_ = false, reading_groups_ = false;
  std::vector<Range> items_;
  std::map<size_t, size_t> expressions_;  // of items: from begin to end, without their names
  std::map<std::string, Range> names_;    // names that AS gives to items
  std::optional<Range> where_, group_, having_, order_, limit_;
  std::set<std::string> grouped_, terms_;  // columns, and other terms, of GROUP BY
  std::set<std::string> keys_, numbers_;
  std::vector<Edit> edits_;
};

bool joins_selects(const Token& token) {
  return token.kind == TokenKind::kWord &&
         (token.text == "union" || token.text == "except" || token.text == "intersect" || token.text == "all");
}

}  // namespace

std::string aggregate_query(std::string_view statement) {
  // Nested calls and SELECTs are each searched once; a longer text was not written by hand and is left to SQLite.
  constexpr size_t kMaxBytes = 20'000;
  if (statement.size() > kMaxBytes) return {};
  const std::vector<Token> tokens = tokens_of(statement);
  // The statement itself may make a table of that name.
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::kWord && tokens[i].text == "with") return {};
    if (tokens[i].kind == TokenKind::kWord && tokens[i].text == "create") return {};
  }
  std::vector<Edit> edits;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != TokenKind::kWord || tokens[i].text != "select") continue;
    Range range = {i, tokens.size()};
    int depth = 0;
    bool is_leaf = true, is_leg = i > 0 && joins_selects(tokens[i - 1]);
    for (size_t k = i + 1; k < tokens.size() && range.end == tokens.size(); ++k) {
      if (tokens[k].text == "(" && tokens[k].kind == TokenKind::kSign) ++depth;
      if (tokens[k].text == ")" && tokens[k].kind == TokenKind::kSign && --depth < 0) range.end = k;
      if (depth == 0 && joins_selects(tokens[k])) is_leg = true, range.end = k;
      if (range.end == tokens.size() && tokens[k].kind == TokenKind::kWord && tokens[k].text == "select")
        is_leaf = false;
    }
    Block block(statement, tokens, range, is_leg);
    if (is_leaf && block.read()) edits.insert(edits.end(), block.edits().begin(), block.edits().end());
  }
  if (edits.empty()) return {};
  sort_stably(edits, {}, &Edit::begin);
  std::string out;
  size_t at = 0;
  for (const Edit& edit : edits) {
    out += statement.substr(at, edit.begin - at);
    out += edit.text;
    at = edit.end;
  }
  return out + std::string(statement.substr(at));
}

}  // namespace stageline::sql
