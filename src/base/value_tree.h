// Values as a Python pickle or a JSON text nests them: nothing, numbers, texts, lists, dictionaries. All nodes lie in
// one arena. A value that the source shares (such as a stack that many records refer to) is stored once.
//
//   ValueTree tree = …;                       // by parse_pickle() or parse_json_tree()
//   Value entries = tree.root()["entries"];   // nothing where there is no such key
//   for (size_t i = 0; i < entries.size(); ++i) entries.item(i)["record_id"].integer();
//
// A damaged pickle may hold a list that contains itself, so code that walks a tree to an unknown depth needs a limit.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

enum class ValueTag : uint8_t { kNone, kBool, kInteger, kUnsigned, kReal, kText, kBytes, kList, kDict };

class ValueTree;

// A place in a tree. It is cheap to copy and must not outlive the tree. A question that does not fit the kind of the
// value gets an empty answer.
class Value {
 public:
  Value() = default;
  Value(const ValueTree* tree, uint32_t node) : tree_(tree), node_(node) {}

  ValueTag tag() const;
  bool is_none() const { return tag() == ValueTag::kNone; }
  bool is_list() const { return tag() == ValueTag::kList; }
  bool is_dict() const { return tag() == ValueTag::kDict; }
  // Returns true for a list or dictionary in which the file ended.
  bool is_cut() const;

  std::optional<bool> boolean() const;
  // Returns whole numbers, also when they are written as a decimal text ("12", as JSON dumps do) or as a real without a
  // fraction.
  std::optional<int64_t> integer() const;
  // Returns what integer() does, and also whole numbers from 2^63 on, which addresses may be. Negative numbers are
  // given in two's complement.
  std::optional<uint64_t> unsigned_integer() const;
  std::optional<double> real() const;
  std::string_view text() const;  // "" when the value is not a text

  size_t size() const;         // elements of a list, or pairs of a dictionary; 0 for others
  Value item(size_t i) const;  // the i-th element of a list, or the value of the i-th pair of a dictionary
  Value key(size_t i) const;   // the i-th key of a dictionary
  Value operator[](std::string_view name) const;  // for a dictionary: the value of the last pair of that name; O(pairs)
  uint32_t node() const { return node_; }         // equal for values that the source shares

 private:
  const ValueTree* tree_ = nullptr;
  uint32_t node_ = 0;
};

class ValueTree {
 public:
  static constexpr uint32_t kNoNode = UINT32_MAX;

  // Texts are views into `bytes`, which the tree keeps.
  explicit ValueTree(std::string bytes = {}) : bytes_(std::move(bytes)) {}

  Value root() const { return root_ == kNoNode ? Value() : Value(this, root_); }
  void set_root(uint32_t node) { root_ = node; }

  std::string& bytes() { return bytes_; }
  const std::string& bytes() const { return bytes_; }
  size_t node_count() const { return nodes_.size(); }

  uint32_t add_none() { return add({ValueTag::kNone, false, 0, 0}); }
  uint32_t add_bool(bool value) { return add({ValueTag::kBool, false, 0, value ? 1u : 0u}); }
  uint32_t add_integer(int64_t value) { return add({ValueTag::kInteger, false, 0, static_cast<uint64_t>(value)}); }
  uint32_t add_unsigned(uint64_t value) { return add({ValueTag::kUnsigned, false, 0, value}); }
  uint32_t add_real(double value);
  // Adds the text of `size` bytes of bytes() from `at`.
  uint32_t add_text(size_t at, size_t size) { return add({ValueTag::kText, false, static_cast<uint32_t>(size), at}); }
  uint32_t add_bytes(size_t at, size_t size) { return add({ValueTag::kBytes, false, static_cast<uint32_t>(size), at}); }
  uint32_t add_list() { return add({ValueTag::kList, false, 0, kNoItems}); }
  uint32_t add_dict() { return add({ValueTag::kDict, false, 0, kNoItems}); }
  // Appends to a list, or alternately a key and a value to a dictionary. Amortised O(1).
  void append(uint32_t container, uint32_t node);
  void mark_cut(uint32_t container) { nodes_[container].cut = true; }
  ValueTag tag_of(uint32_t node) const { return nodes_[node].tag; }

 private:
  friend class Value;
  static constexpr uint64_t kNoItems = UINT64_MAX;
  struct Node {
    ValueTag tag;
    bool cut;
    uint32_t size;  // bytes of a text, or entries of a container in items_
    // The value itself, a position in bytes_, or the first entry in items_ (the container's capacity stands before
    // that).
    uint64_t at;
  };
  static_assert(sizeof(Node) == 16);
  uint32_t add(Node node) {
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  std::string bytes_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> items_;
  uint32_t root_ = kNoNode;
};

}  // namespace stageline
