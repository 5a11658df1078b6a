// The tool that checks claims against the answers that they rest on.
#include "base/json_tree.h"
#include "mcp/tools.h"

namespace stageline::mcp {
namespace {

// A unit, the raw unit that it counts, and how many of these it is: "ms" is 1e6 of "ns".
struct Unit {
  const char* name;
  const char* raw;
  double factor;
};
constexpr Unit kUnits[] = {
#define UNIT(name, raw, factor) {name, raw, factor},
#include "mcp/units.def"
};
const Unit* find_unit(std::string_view name) {
  for (const Unit& unit : kUnits)
    if (name == unit.name) return &unit;
  return nullptr;
}

// A place in an answer, the value there, and its unit where the answer says one.
struct Found {
  std::string at;
  Value value;
  std::string unit;
};

bool is_number(const Value& value) {
  return value.tag() == ValueTag::kInteger || value.tag() == ValueTag::kUnsigned || value.tag() == ValueTag::kReal;
}

double number_of(const Value& value, double otherwise) {
  if (value.is_none()) return otherwise;
  if (const auto real = value.real()) return *real;
  return value.integer().value_or(0);
}

// The raw unit of a value: in a row, that of its column; for a member, the one in its name.
std::string unit_at(const Value& answer, std::string_view at) {
  const auto parts = split(at, '/');
  if (parts.size() == 4 && parts[1] == "rows")
    if (const auto column = parse_int(parts[3])) {
      const Value spec = answer["columns"].item(std::max<int64_t>(0, *column));
      return std::string(spec["unit"].text());
    }
  const std::string_view name = parts.empty() ? std::string_view() : parts.back();
  return name.ends_with("_ns") ? "ns" : name.ends_with("_share") ? "share" : name.ends_with("bytes") ? "bytes" : "";
}

// Follows a JSON pointer (RFC 6901).
std::optional<Value> at_pointer(Value value, std::string_view pointer) {
  if (pointer.empty() || pointer[0] != '/') return std::nullopt;
  for (const std::string_view part : split(pointer.substr(1), '/')) {
    std::string name;
    for (size_t i = 0; i < part.size(); ++i)
      if (part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1'))
        name += part[++i] == '0' ? '~' : '/';
      else name += part[i];
    if (value.is_list()) {
      const auto index = parse_int(name);
      if (!index || *index < 0 || *index >= std::ssize(value)) return std::nullopt;
      value = value.item(*index);
      continue;
    }
    bool found = false;
    for (size_t i = 0; value.is_dict() && i < value.size() && !found; ++i)
      if (value.key(i).text() == name) value = value.item(i), found = true;
    if (!found) return std::nullopt;
  }
  return value;
}

// Finds in an answer the number nearest to `wanted`, in the answer's unit, or the text that is equal. Members that
// describe columns and the question are not searched.
struct Search {
  const Value answer, expect;
  double wanted, factor;
  const std::string raw;  // "": any unit
  std::optional<Found> best;
  double distance = 0;

  void look(const Value& value, const std::string& at, int depth) {
    if (depth > 20 || at == "/columns" || at == "/handle" || at == "/query") return;
    if (value.is_list() || value.is_dict()) {
      for (size_t i = 0; i < value.size(); ++i)
        look(value.item(i), at + "/" + (value.is_dict() ? std::string(value.key(i).text()) : std::to_string(i)),
             depth + 1);
      return;
    }
    if (expect.tag() == ValueTag::kText || expect.tag() == ValueTag::kBool) {
      if (value.tag() != expect.tag()) return;
      const bool same =
          expect.tag() == ValueTag::kText ? value.text() == expect.text() : value.boolean() == expect.boolean();
      if (!best || (same && distance > 0)) best = Found{at, value, ""}, distance = same ? 0 : 1;
      return;
    }
    if (!is_number(value)) return;
    const std::string unit = unit_at(answer, at);
    if (!raw.empty() && !unit.empty() && unit != raw) return;
    if (const double away = std::abs(number_of(value, 0) - wanted * factor); !best || away < distance)
      best = Found{at, value, unit}, distance = away;
  }
};

// A claim: where to look, and the value that should be there.
struct Claim {
  std::string sql, handle, at;
  Value expect;
  bool is_text = false;  // or true or false; otherwise a number
  std::string unit_name;
  const Unit* unit = nullptr;
  double factor = 1, wanted = 0, tolerance = 0;
};

// Returns the value that a claim is about; otherwise sets `why`.
std::optional<Found> found_in(const Value& answer, const Claim& claim, std::string& why) {
  if (answer["cannot_answer"].boolean().value_or(false)) {
    why = "the run cannot say it: " + std::string(answer["why"].text());
    return std::nullopt;
  }
  if (!claim.at.empty()) {
    if (const auto value = at_pointer(answer, claim.at)) return Found{claim.at, *value, unit_at(answer, claim.at)};
    why = "the answer has nothing at " + claim.at;
    return std::nullopt;
  }
  std::optional<Found> found;
  if (claim.sql.empty()) {
    Search search{answer, claim.expect, claim.wanted, claim.factor, claim.unit ? claim.unit->raw : "", {}, 0};
    search.look(answer, "", 0);
    found = search.best;
  } else {
    const Value row = answer["rows"].item(0);
    for (size_t c = 0; c < row.size() && !found; ++c)
      if (const std::string at = "/rows/0/" + std::to_string(c);
          claim.is_text ? row.item(c).tag() == claim.expect.tag() : is_number(row.item(c)))
        found = Found{at, row.item(c), unit_at(answer, at)};
  }
  if (!found) why = claim.is_text ? "the answer holds no such value" : "the answer holds no number";
  return found;
}

// Returns "holds" or "does_not"; otherwise sets `why`.
const char* verdict_on(const Claim& claim, const Found& found, std::string& why) {
  if (claim.is_text) {
    const bool same = found.value.tag() == claim.expect.tag() &&
                      (claim.expect.tag() == ValueTag::kText ? found.value.text() == claim.expect.text()
                                                             : found.value.boolean() == claim.expect.boolean());
    return same ? "holds" : "does_not";
  }
  if (!is_number(found.value)) {
    why = "what stands there is no number";
  } else if (claim.unit && !found.unit.empty() && found.unit != claim.unit->raw) {
    why = "the claim is in " + claim.unit_name + ", the answer in " + found.unit;
  } else {
    const double wanted = claim.wanted * claim.factor, off = std::abs(number_of(found.value, 0) - wanted);
    // Decimal claims in larger units are not exact in binary: 1.1 ms comes out as 1 100 000.0000000001 ns.
    return off <= claim.tolerance + std::abs(wanted) * 1e-12 ? "holds" : "does_not";
  }
  return "cannot_tell";
}

}  // namespace

Result<std::string> Tools::verify(const Value& arguments) {
  TRY(run, opened(arguments));
  const std::string id = (*run)->id;
  JsonWriter json;
  json.begin_object().key("claims").begin_array();
  const Value claims = arguments["claims"];
  for (size_t i = 0; i < claims.size(); ++i) {
    const Value given = claims.item(i), expect = given["expect"]["value"];
    const bool is_text = expect.tag() == ValueTag::kText || expect.tag() == ValueTag::kBool;
    if (given["text"].tag() != ValueTag::kText || (!is_number(expect) && !is_text))
      return wrong("verify: a claim has a text and expect.value, a number, a text or true or false");
    Claim claim{std::string(given["sql"].text()),
                std::string(given["handle"].text()),
                std::string(given["at"].text()),
                expect,
                is_text,
                std::string(given["expect"]["unit"].text())};
    claim.unit = find_unit(claim.unit_name);
    if (!claim.unit_name.empty() && !claim.unit)
      return wrong("verify: there is no unit \"" + clean_text(claim.unit_name, 20) + "\"",
                   "ns, us, ms, s, min, %, share, B, kB, MB, GB, KiB, MiB, GiB, count");
    if (claim.unit) claim.factor = claim.unit->factor;
    if (!is_text) claim.wanted = number_of(expect, 0);
    claim.tolerance = std::max(0.0, number_of(given["expect"]["tolerance"], 0)) * claim.factor;
    std::optional<Found> found;
    std::optional<JsonTree> tree;
    std::string why;
    if (claim.sql.empty() == claim.handle.empty()) {
      why = "a claim rests on either sql or a handle";
    } else if (!claim.handle.empty() && !claim.handle.starts_with("h:" + id + ":")) {
      why = "the handle is not of this run";
    } else {
      const Result<std::string> made = claim.sql.empty() ? recompute(claim.handle) : query(**run, claim.sql, 1, "");
      if (!made) {
        why = made.error().what + (made.error().hint.empty() ? "" : "; " + made.error().hint);
      } else if (Result<JsonTree> parsed = parse_json_tree(*made, "answer")) {
        tree = std::move(*parsed);
        found = found_in(tree->tree.root(), claim, why);
      }
    }
    const char* verdict = found ? verdict_on(claim, *found, why) : "cannot_tell";
    json.begin_object().field("text", clean_text(given["text"].text(), 500)).field("verdict", verdict).key("number");
    if (!found) json.null();
    else if (found->value.tag() == ValueTag::kText) json.value(clean_text(found->value.text()));
    else json.raw(canonical_json(found->value));
    if (found) json.field("unit", found->unit).field("at", clean_text(found->at));
    json.field("from", claim.sql.empty() ? clean_text(claim.handle, 60) : clean_text(claim.sql))
        .field("why", clean_text(why, 1000));
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace stageline::mcp
