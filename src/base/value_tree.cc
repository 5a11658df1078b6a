#include "base/value_tree.h"

namespace stageline {

ValueTag Value::tag() const { return tree_ ? tree_->nodes_[node_].tag : ValueTag::kNone; }

bool Value::is_cut() const { return tree_ && tree_->nodes_[node_].cut; }

std::optional<bool> Value::boolean() const {
  if (tag() != ValueTag::kBool) return std::nullopt;
  return tree_->nodes_[node_].at != 0;
}

std::optional<int64_t> Value::integer() const {
  switch (tag()) {
    case ValueTag::kInteger: return static_cast<int64_t>(tree_->nodes_[node_].at);
    case ValueTag::kText: return parse_int(text());
    case ValueTag::kReal: {
      const double value = *real();
      if (std::abs(value) < 9e15 && value == std::floor(value)) return static_cast<int64_t>(value);
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<uint64_t> Value::unsigned_integer() const {
  if (tag() == ValueTag::kUnsigned) return tree_->nodes_[node_].at;
  const auto whole = integer();
  return whole ? std::optional<uint64_t>(static_cast<uint64_t>(*whole)) : std::nullopt;
}

std::optional<double> Value::real() const {
  switch (tag()) {
    case ValueTag::kReal: return std::bit_cast<double>(tree_->nodes_[node_].at);
    case ValueTag::kInteger: return static_cast<double>(static_cast<int64_t>(tree_->nodes_[node_].at));
    case ValueTag::kUnsigned: return static_cast<double>(tree_->nodes_[node_].at);
    case ValueTag::kText: return parse_double(text());
    default: return std::nullopt;
  }
}

std::string_view Value::text() const {
  if (tag() != ValueTag::kText) return {};
  const ValueTree::Node& node = tree_->nodes_[node_];
  return std::string_view(tree_->bytes_).substr(node.at, node.size);
}

size_t Value::size() const {
  if (is_list()) return tree_->nodes_[node_].size;
  if (is_dict()) return tree_->nodes_[node_].size / 2;
  return 0;
}

Value Value::item(size_t i) const {
  if (i >= size()) return {};
  const uint64_t first = tree_->nodes_[node_].at;
  return {tree_, tree_->items_[static_cast<size_t>(first) + (is_list() ? i : 2 * i + 1)]};
}

Value Value::key(size_t i) const {
  if (!is_dict() || i >= size()) return {};
  return {tree_, tree_->items_[static_cast<size_t>(tree_->nodes_[node_].at) + 2 * i]};
}

Value Value::operator[](std::string_view name) const {
  for (size_t i = is_dict() ? size() : 0; i > 0; --i)
    if (const Value k = key(i - 1); k.tag() == ValueTag::kText && k.text() == name) return item(i - 1);
  return {};
}

uint32_t ValueTree::add_real(double value) { return add({ValueTag::kReal, false, 0, std::bit_cast<uint64_t>(value)}); }

void ValueTree::append(uint32_t container, uint32_t node) {
  constexpr uint32_t kFirstCapacity = 4;
  Node& of = nodes_[container];
  if (of.at == kNoItems) {
    items_.push_back(kFirstCapacity);
    of.at = items_.size();
    items_.resize(items_.size() + kFirstCapacity);
  } else if (const uint32_t capacity = items_[static_cast<size_t>(of.at) - 1]; of.size == capacity) {
    const size_t from = of.at;
    if (from + capacity == items_.size()) {  // this container was made last, so it can grow in place
      items_[from - 1] = 2 * capacity;
      items_.resize(items_.size() + capacity);
    } else {
      items_.push_back(2 * capacity);
      of.at = items_.size();
      items_.resize(items_.size() + 2 * size_t{capacity});
      for (size_t i = 0; i < capacity; ++i) items_[static_cast<size_t>(of.at) + i] = items_[from + i];
    }
  }
  items_[static_cast<size_t>(of.at) + of.size++] = node;
}

}  // namespace stageline
