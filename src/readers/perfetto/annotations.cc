#include "readers/perfetto/annotations.h"

#include "base/json_writer.h"
#include "base/perfetto_fields.h"
#include "base/proto_scan.h"

namespace stageline::pftrace {
namespace {

namespace note = perfetto::annotation;
using rows::ArgKey;

constexpr int kDeepestValue = 32;
constexpr size_t kLongestValue = size_t{1} << 20;

struct Value {
  uint32_t id = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

void append_scalar(std::string& out, const Value& value, const TextInterner& texts, const Sequence& sequence,
                   bool quoted) {
  const auto text = [&](std::string_view t) {
    if (quoted) return append_json_string(out, t);
    out += t;
  };
  switch (value.id) {
    case note::kBool: out += value.number != 0 ? "true" : "false"; break;
    case note::kUint:
    case note::kPointer: out += std::to_string(value.number); break;
    case note::kInt: out += std::to_string(static_cast<int64_t>(value.number)); break;
    case note::kDouble: out += repr_double(std::bit_cast<double>(value.number)); break;
    case note::kText: text(valid_utf8(value.bytes)); break;
    case note::kTextIid: {
      const uint32_t* known = sequence.annotation_texts.get(value.number);
      text(known ? texts.text(*known) : std::string_view());
      break;
    }
    case note::kLegacyJson: out += valid_utf8(value.bytes); break;
    default: break;
  }
}

// Returns true if a field of this number and wire is a plain value.
bool is_scalar(const ProtoScan& scan) {
  switch (scan.id) {
    case note::kBool:
    case note::kUint:
    case note::kInt:
    case note::kPointer:
    case note::kTextIid: return scan.wire == ProtoScan::kVarint;
    case note::kDouble: return scan.wire == ProtoScan::kFixed64;
    case note::kText:
    case note::kLegacyJson: return scan.is_bytes();
    default: return false;
  }
}

// NestedValue, the older form of lists: type 1 dictionary, 2 list.
void append_nested(std::string& out, std::string_view bytes, int depth) {
  enum : uint32_t { kType = 1, kKeys = 2, kValues = 3, kItems = 4, kInt = 5, kDouble = 6, kBool = 7, kText = 8 };
  uint64_t type = 0;
  for (ProtoScan scan(bytes); scan.next();)
    if (scan.id == kType) type = scan.value;
  const char* separator = type == 2 ? "[" : "";
  for (ProtoScan scan(bytes); scan.next() && out.size() < kLongestValue;) switch (scan.id) {
      case kItems:
        out += separator;
        separator = ", ";
        if (scan.is_bytes() && depth < kDeepestValue) append_nested(out, scan.bytes, depth + 1);
        break;
      case kInt: out += std::to_string(scan.as_signed()); break;
      case kDouble: out += repr_double(scan.as_double()); break;
      case kBool: out += scan.value != 0 ? "true" : "false"; break;
      case kText:
        if (scan.is_bytes()) append_json_string(out, valid_utf8(scan.bytes));
        break;
      default: break;
    }
  if (type == 2) out += separator[0] == '[' ? "[]" : "]";
}

int64_t whole(const Value& value) {
  if (value.id == note::kInt || value.id == note::kUint) return value.number;
  if (value.id == note::kText) return parse_int(value.bytes).value_or(-1);
  return -1;
}

}  // namespace

std::string& Annotations::scratch() {
  if (used_ == pool_.size()) pool_.emplace_back();
  std::string& text = pool_[used_++];
  text.clear();
  return text;
}

void Annotations::append_value(std::string& out, std::string_view annotation, const Sequence& sequence,
                               int depth) const {
  if (depth > kDeepestValue || out.size() > kLongestValue) return;
  Value value;
  bool is_list = false, is_dictionary = false;
  const auto item = [&](std::string_view bytes) {
    if (bytes.size() < annotation.size()) append_value(out, bytes, sequence, depth + 1);
  };
  for (ProtoScan scan(annotation); scan.next();) {
    if (scan.id == note::kArrayValue && scan.is_bytes()) {
      out += is_list ? ", " : "[";
      is_list = true;
      item(scan.bytes);
    } else if (scan.id == note::kDictEntry && scan.is_bytes()) {
      out += is_dictionary ? ", " : "{";
      is_dictionary = true;
      for (ProtoScan entry(scan.bytes); entry.next();)
        if (entry.id == note::kName && entry.is_bytes()) append_json_string(out, valid_utf8(entry.bytes));
      out += ": ";
      item(scan.bytes);
    } else if (scan.id == note::kNested && scan.is_bytes()) {
      append_nested(out, scan.bytes, depth + 1);
    } else if (is_scalar(scan)) {
      value = {scan.id, scan.value, scan.bytes};
    }
  }
  if (is_list) out += "]";
  else if (is_dictionary) out += "}";
  else if (value.id != 0) append_scalar(out, value, texts_, sequence, depth > 0);
  else if (depth > 0 && out.size() > 0 && out.back() != ']') out += "[]";  // an empty list looks like no value
}

void Annotations::set(AnnotationName name, std::string_view text, rows::Event& event) {
  if (name.key != ArgKey::kNone) rows::set_arg(name.key, text, event);
}

void Annotations::read(std::string_view annotation, const Sequence& sequence, rows::Event& event, OwnCell& own) {
  AnnotationName name;
  Value value;
  bool is_plain = true;  // it holds its name and scalars, and no list
  for (ProtoScan scan(annotation); scan.next();) {
    if (scan.id == note::kNameIid && scan.wire == ProtoScan::kVarint) {
      if (const AnnotationName* known = sequence.annotation_names.get(scan.value)) name = *known;
    } else if (scan.id == note::kName && scan.is_bytes()) {
      name = annotation_name(scan.bytes);
    } else if (is_scalar(scan)) {
      value = {scan.id, scan.value, scan.bytes};
    } else {
      is_plain = false;
    }
  }
  if (name.own != OwnKey::kNone) {
    own.present |= 1u << static_cast<unsigned>(name.own);
    switch (name.own) {
      case OwnKey::kKind: {
        std::string& text = scratch();
        append_scalar(text, value, texts_, sequence, false);
        const auto kind = kind_from_code(text);
        if (kind) own.kind = *kind;
        else own.present &= ~(1u << static_cast<unsigned>(OwnKey::kKind));
        break;
      }
      case OwnKey::kStep: own.step = whole(value); break;
      case OwnKey::kStage: own.stage = whole(value); break;
      case OwnKey::kChunk: own.chunk = whole(value); break;
      case OwnKey::kMicroBatch: own.micro_batch = whole(value); break;
      case OwnKey::kRank: own.rank = whole(value); break;
      case OwnKey::kDp: own.dp = whole(value); break;
      case OwnKey::kOperation:
        if (const uint32_t* known = value.id == note::kTextIid ? sequence.annotation_texts.get(value.number) : nullptr)
          own.operation = *known;
        break;
      default: break;
    }
    return;
  }
  if (name.key == ArgKey::kNone) return;
  const bool is_number = value.id == note::kInt || (value.id == note::kUint && value.number <= INT64_MAX);
  if (is_number && name.key == ArgKey::kCorrelation) {
    event.correlation = value.number;
  } else if (is_number && name.key == ArgKey::kExternalId) {
    event.external_id = value.number;
    event.has_operator = true;
  } else if (is_number && is_plain && rows::set_number(name.key, value.number, event)) {
    return;
  } else if (value.id == note::kText) {
    rows::set_arg(name.key, scratch() = valid_utf8(value.bytes), event);
  } else {
    std::string& text = scratch();
    append_value(text, annotation, sequence, 0);
    if (text.empty() && rows::arg_field(name.key).array) text = "[]";
    rows::set_arg(name.key, text, event);
  }
}

}  // namespace stageline::pftrace
