#include "base/pickle.h"

namespace stageline {
namespace {

constexpr size_t kMaxText = size_t{16} << 20;
constexpr uint32_t kMark = ValueTree::kNoNode;

// Returns the name of an opcode that imports, calls, or reads outside the file.
const char* forbidden_name(uint8_t op) {
  switch (op) {
#define FORBIDDEN(opcode, name) \
  case opcode: return name;
#include "base/forbidden_opcodes.def"
    default: return nullptr;
  }
}

class PickleReader {
 public:
  explicit PickleReader(std::string bytes) : tree_(std::move(bytes)) {}

  Result<PickleTree> read(const std::string& path) {
    bool done = false;
    while (!done && broken_.empty()) {
      op_at_ = at_;
      if (at_ >= size()) {
        broken_ = "the file ends inside the pickle";
        break;
      }
      const auto op = static_cast<uint8_t>(tree_.bytes()[at_++]);
      if (const char* name = forbidden_name(op))
        return make_error(ErrorCode::kBadInput,
                          std::string("this pickle holds more than plain data (opcode ") + name + ")",
                          "Stageline runs no code of a pickle; dump the dictionary alone, or save it as JSON",
                          {path, 0, static_cast<int64_t>(op_at_)});
      done = op == '.';
      if (!done) step(op);
    }
    if (broken_.empty() && (stack_.empty() || stack_.back() == kMark)) broken_ = "the pickle holds no value";
    if (!broken_.empty()) close_all();
    PickleTree out;
    if (!broken_.empty()) out.broken_at = op_at_, out.why_broken = broken_;
    if (!stack_.empty()) tree_.set_root(broken_.empty() ? stack_.back() : stack_.front());
    out.tree = std::move(tree_);
    return out;
  }

 private:
  size_t size() const { return tree_.bytes().size(); }
  void fail(const char* why) {
    if (broken_.empty()) broken_ = why;
  }

  // Reads `bytes` little-endian bytes. Fails at the end of the file.
  uint64_t number(size_t bytes) {
    if (size() - at_ < bytes) {
      fail("the file ends inside the pickle");
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i)
      value |= static_cast<uint64_t>(static_cast<uint8_t>(tree_.bytes()[at_ + i])) << (8 * i);
    at_ += bytes;
    return value;
  }

  void push(uint32_t node) { stack_.push_back(node); }
  uint32_t pop() {
    if (stack_.empty() || stack_.back() == kMark) {
      fail("an opcode takes more values than there are");
      return tree_.add_none();
    }
    const uint32_t node = stack_.back();
    stack_.pop_back();
    return node;
  }
  // Returns the index after the topmost mark.
  size_t after_mark() {
    for (size_t i = stack_.size(); i > 0; --i)
      if (stack_[i - 1] == kMark) return i;
    fail("an opcode looks for a mark that is not there");
    return stack_.size();
  }

  void push_text(uint64_t length, bool is_text) {
    if (!broken_.empty()) return;
    if (length > size() - at_) return fail("the file ends inside a text");
    if (length > kMaxText) return fail("a text is longer than 16 MiB");
    const size_t count = length;
    push(is_text ? tree_.add_text(at_, count) : tree_.add_bytes(at_, count));
    at_ += count;
  }

  // Reads the operand of LONG1 and LONG4: two's complement of any length.
  void push_long(uint64_t length) {
    if (!broken_.empty()) return;
    if (length > size() - at_) return fail("the file ends inside a number");
    const std::string& bytes = tree_.bytes();
    const size_t count = length;
    const bool negative = count > 0 && (static_cast<uint8_t>(bytes[at_ + count - 1]) & 0x80) != 0;
    uint64_t value = negative ? ~uint64_t{0} : 0;
    bool fits = true;
    for (size_t i = 0; i < count; ++i) {
      const auto byte = static_cast<uint8_t>(bytes[at_ + i]);
      if (i < 8) {
        value &= ~(uint64_t{0xff} << (8 * i));
        value |= static_cast<uint64_t>(byte) << (8 * i);
      } else {
        fits = fits && byte == (negative ? 0xff : 0);
      }
    }
    at_ += count;
    const bool top = (value >> 63) != 0;
    if (!fits || (negative && !top)) push(tree_.add_none());
    else if (top && !negative) push(tree_.add_unsigned(value));
    else push(tree_.add_integer(value));
  }

  void push_real() {
    uint64_t bits = 0;
    if (size() - at_ < 8) return fail("the file ends inside the pickle");
    for (size_t i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(tree_.bytes()[at_ + i]);
    at_ += 8;
    push(tree_.add_real(std::bit_cast<double>(bits)));
  }

  void remember(size_t slot) {
    if (stack_.empty() || stack_.back() == kMark) return fail("an opcode keeps a value that is not there");
    if (slot > size()) return fail("a value is kept under a number larger than the file");
    if (slot >= memo_.size()) memo_.resize(slot + 1, kMark);
    memo_[slot] = stack_.back();
  }
  void recall(size_t slot) {
    if (slot >= memo_.size() || memo_[slot] == kMark) return fail("an opcode asks for a value that was never kept");
    push(memo_[slot]);
  }

  // Makes one list of everything after the mark.
  void collect(size_t first) {
    if (!broken_.empty()) return;
    const uint32_t list = tree_.add_list();
    for (size_t i = first; i < stack_.size(); ++i) tree_.append(list, stack_[i]);
    stack_.resize(first - 1);
    push(list);
  }
  void collect_top(size_t count) {
    const uint32_t list = tree_.add_list();
    if (stack_.size() < count) return fail("an opcode takes more values than there are");
    for (size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      if (stack_[i] == kMark) return fail("an opcode takes more values than there are");
      tree_.append(list, stack_[i]);
    }
    stack_.resize(stack_.size() - count);
    push(list);
  }

  // Puts the values from `first` on into the container below them.
  void put_into(size_t first, size_t below, ValueTag wanted) {
    if (!broken_.empty()) return;
    if (below == 0 || stack_[below - 1] == kMark || tree_.tag_of(stack_[below - 1]) != wanted)
      return fail("an opcode fills a container that is not there");
    if (wanted == ValueTag::kDict && (stack_.size() - first) % 2 != 0)
      return fail("a dictionary has a key without value");
    for (size_t i = first; i < stack_.size(); ++i) tree_.append(stack_[below - 1], stack_[i]);
    stack_.resize(below);
  }

  void step(uint8_t op) {
    switch (op) {
      case 0x80: {
        const uint64_t protocol = number(1);
        if (broken_.empty() && (protocol < 2 || protocol > 5)) fail("this is a protocol other than 2 to 5");
        return;
      }
#define OPCODE(code, name, action) \
  case code: action; return;
#include "base/pickle_opcodes.def"
      case '1': {
        const size_t first = after_mark();
        if (broken_.empty()) stack_.resize(first - 1);
        return;
      }
      case '2': {
        const uint32_t node = pop();
        push(node);
        return push(node);
      }
      default: return fail("this opcode is none of a binary pickle's (protocols 0 and 1 are not read)");
    }
  }

  void push_unsigned(size_t bytes) {
    const int64_t value = number(bytes);
    if (broken_.empty()) push(tree_.add_integer(value));
  }
  void push_signed(size_t bytes) {
    const auto value = static_cast<int32_t>(number(bytes));
    if (broken_.empty()) push(tree_.add_integer(value));
  }
  void fill_after_mark(ValueTag wanted) {
    const size_t first = after_mark();
    if (broken_.empty()) put_into(first, first - 1, wanted);
  }
  void fill_top(size_t count, ValueTag wanted) {
    if (stack_.size() <= count) return fail("an opcode fills a container that is not there");
    for (size_t i = stack_.size() - count; i < stack_.size(); ++i)
      if (stack_[i] == kMark) return fail("an opcode fills a container that is not there");
    put_into(stack_.size() - count, stack_.size() - count, wanted);
  }

  // After damage: everything above a mark goes into the container below it as far as it is complete, and that container
  // is marked as cut. This is done from the innermost container outwards.
  void close_all() {
    while (!stack_.empty()) {
      size_t mark = stack_.size();
      while (mark > 0 && stack_[mark - 1] != kMark) --mark;
      if (mark == 0) break;  // no mark is left
      if (mark == 1) {       // a mark without a container below it
        stack_.resize(0);
        break;
      }
      const uint32_t below = stack_[mark - 2];
      const bool is_list = below != kMark && tree_.tag_of(below) == ValueTag::kList;
      const bool is_dict = below != kMark && tree_.tag_of(below) == ValueTag::kDict;
      const size_t count = stack_.size() - mark;
      if (is_list || is_dict) {
        for (size_t i = 0; i + (is_dict ? count % 2 : 0) < count; ++i) tree_.append(below, stack_[mark + i]);
        tree_.mark_cut(below);
      }
      stack_.resize(mark - 1);
    }
    if (stack_.size() > 1) stack_.resize(1);
  }

  ValueTree tree_;
  size_t at_ = 0, op_at_ = 0;
  std::vector<uint32_t> stack_, memo_;
  std::string broken_;
};

}  // namespace

Result<PickleTree> parse_pickle(std::string bytes, const std::string& path) {
  if (!begins_pickle(bytes))
    return make_error(ErrorCode::kBadInput, "this is no Python pickle of protocol 2 to 5", "", {path, 0, 0});
  return PickleReader(std::move(bytes)).read(path);
}

bool begins_pickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

}  // namespace stageline
