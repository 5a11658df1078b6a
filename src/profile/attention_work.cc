#include "profile/op_flops.h"

namespace stageline {
namespace {

// Where an operator has what decides its work, as indices of its arguments; −1: it has none.
struct Form {
  std::string_view name;
  int causal, window, packed, mask;  // window: keys to the left; packed: starts of the sequences in one row
  bool backward, heads_last;         // [batch, length, heads, dimension]; else heads come before lengths
  size_t first() const { return backward ? 1 : 0; }  // the gradient comes before query, key and value
};

constexpr Form kForms[] = {
#define FORM(...) {__VA_ARGS__},
#include "profile/attention_forms.def"
};

const Form* form_of(std::string_view name) {
  name = name.substr(0, name.find('.'));  // an overload may follow
  constexpr std::string_view kOther = "flashattn::";
  const bool other = name.starts_with(kOther);
  if (other) name.remove_prefix(kOther.size());
  const auto is = [&](const Form& form) {
    return other ? form.name.starts_with("flash_attn::") && form.name.substr(12) == name : form.name == name;
  };
  const auto found = std::ranges::find_if(kForms, is);
  return found == std::end(kForms) ? nullptr : found;
}

struct Mask {
  bool causal = false;
  int64_t window = 0;  // keys that a query sees, its own with it; 0: all

  // Returns the pairs of query and key in one sequence.
  uint64_t pairs(int64_t length) const {
    if (!causal) return product_or_limit(static_cast<uint64_t>(length), length);
    const auto keys = static_cast<uint64_t>(window > 0 ? std::min(window, length) : length);
    return keys * (keys + 1) / 2 + (static_cast<uint64_t>(length) - keys) * keys;
  }
  uint64_t pairs(int64_t queries, int64_t keys) const {
    if (queries == keys) return pairs(queries);
    if (!causal) return product_or_limit(static_cast<uint64_t>(queries), keys);
    const auto rows = static_cast<uint64_t>(std::min(queries, keys));  // query i sees keys 0 to i
    return rows * (rows + 1) / 2 + static_cast<uint64_t>(std::max<int64_t>(queries - keys, 0)) * rows;
  }
};

// The fewest and most pairs of that number of sequences with this sum and this longest: the others are as equal, or as
// unequal, as they can be.
std::optional<std::pair<uint64_t, uint64_t>> pairs_between(const Mask& mask, int64_t count, int64_t sum,
                                                           int64_t longest) {
  if (count < 1 || longest < 1 || longest > sum || (sum - 1) / longest >= count) return std::nullopt;
  if (count == 1) return std::pair(mask.pairs(sum), mask.pairs(sum));
  const int64_t others = count - 1, rest = sum - longest;
  const int64_t each = rest / others, one_more = rest % others;
  const uint64_t first = mask.pairs(longest);
  const uint64_t min =
      first + product_or_limit(mask.pairs(each + 1), one_more) + product_or_limit(mask.pairs(each), others - one_more);
  const int64_t shortest = rest >= others ? 1 : 0, more = longest - shortest;  // a padded row has empty sequences
  const int64_t free = rest - others * shortest, full = more > 0 ? free / more : 0;
  const int64_t part = more > 0 && full < others ? 1 : 0;
  const uint64_t max = first + product_or_limit(mask.pairs(longest), full) +
                       product_or_limit(mask.pairs(shortest + (more > 0 ? free % more : 0)), part) +
                       product_or_limit(mask.pairs(shortest), others - full - part);
  return std::pair(min, std::max(min, max));
}

bool is_true(std::string_view value) { return value == "True" || value == "true" || value == "1" || value == "2"; }

// The sizes of an operator's query, key and value; `length` is the sum of the lengths where sequences are packed.
struct Heads {
  int64_t batch = 1, heads = 0, length = 0, keys = 0, key_dim = 0, value_dim = 0;
};

std::optional<Heads> heads_of(const Form& form, const std::vector<std::vector<int64_t>>& shapes, bool packed) {
  if (shapes.size() < form.first() + 3) return std::nullopt;
  const auto &q = shapes[form.first()], &k = shapes[form.first() + 1], &v = shapes[form.first() + 2];
  const size_t dims = q.size();
  if (k.size() != dims || v.size() != dims || (dims != 4 && !(dims == 3 && packed))) return std::nullopt;
  for (const auto* shape : {&q, &k, &v})
    for (const int64_t size : *shape)
      if (size <= 0 || size > INT32_MAX / 2) return std::nullopt;
  const size_t head = form.heads_last ? dims - 2 : dims - 3, length = form.heads_last ? dims - 3 : dims - 2;
  if (q.back() != k.back() || k[length] != v[length] || k[head] != v[head]) return std::nullopt;
  if (dims == 4 && (q[0] != k[0] || q[0] != v[0] || (packed && q[0] != 1))) return std::nullopt;
  return Heads{dims == 4 ? q[0] : 1, q[head], q[length], k[length], q.back(), v.back()};
}

}  // namespace

bool is_attention(std::string_view name) { return form_of(name) != nullptr; }

std::optional<AttentionWork> attention_work(std::string_view name, const std::vector<std::vector<int64_t>>& shapes,
                                            const std::vector<std::string_view>& values) {
  const Form* form = form_of(name);
  const auto value = [&](int at) {
    return at >= 0 && at < std::ssize(values) ? values[static_cast<size_t>(at)] : std::string_view();
  };
  if (!form || value(form->causal).empty()) return std::nullopt;
  const bool packed =
      form->packed >= 0 && form->packed < std::ssize(shapes) && !shapes[static_cast<size_t>(form->packed)].empty();
  const std::optional<Heads> heads = heads_of(*form, shapes, packed);
  if (!heads) return std::nullopt;
  Mask mask{is_true(value(form->causal))};
  if (const int64_t left = parse_int(value(form->window)).value_or(-1); left >= 0) {
    if (!mask.causal || heads->length != heads->keys) return std::nullopt;  // its right side is not known here
    mask.window = std::min<int64_t>(left, INT32_MAX) + 1;
  }
  std::optional<std::pair<uint64_t, uint64_t>> pairs;
  if (packed) {
    const int64_t starts = shapes[static_cast<size_t>(form->packed)][0];
    const auto longest = parse_int(value(form->packed + 2));
    if (starts < 2 || !longest || heads->length != heads->keys) return std::nullopt;
    pairs = pairs_between(mask, starts - 1, heads->length, *longest);
    if (!pairs) return std::nullopt;
  } else {
    const uint64_t of_one = mask.pairs(heads->length, heads->keys);
    pairs = std::pair(product_or_limit(of_one, heads->batch), product_or_limit(of_one, heads->batch));
  }
  const int64_t d = heads->key_dim, dv = heads->value_dim;
  const int64_t each = 2 * (form->backward ? 3 * d + 2 * dv : d + dv);
  AttentionWork out{.query = form->first()};
  out.flops = product_or_limit(product_or_limit(pairs->first, heads->heads), each);
  out.max_flops = product_or_limit(product_or_limit(pairs->second, heads->heads), each);
  const auto elements = [](const std::vector<int64_t>& shape) {
    uint64_t product = 1;
    for (const int64_t size : shape) product = product_or_limit(product, size);
    return product;
  };
  const size_t q = out.query;
  out.written = form->backward ? elements(shapes[q]) + elements(shapes[q + 1]) + elements(shapes[q + 2])
                               : product_or_limit(elements(shapes[q]) / static_cast<uint64_t>(d), dv);
  if (form->mask >= 0) out.mask = static_cast<size_t>(form->mask);
  return out;
}

}  // namespace stageline
