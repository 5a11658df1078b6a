// STRING_IDS of one database, as far as rows name them: a 20 GB file may hold more text than fits, of which a pipeline
// needs little. And flat maps from the profiler's numbers to rows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/sqlite_db.h"
#include "readers/ascend/part_builder.h"

namespace stageline::ascend {

// Open addressing, one array: numbers of up to some 10⁷ rows are put and asked for.
class NumberMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The first value put for a key stays. Returns what stands there now.
  uint32_t put(int64_t key, uint32_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[find(slots_, key)];
    if (slot.value != kNone) return slot.value;
    slot = {key, value};
    ++size_;
    return value;
  }
  void replace(int64_t key, uint32_t value) {
    if (put(key, value) != value) slots_[find(slots_, key)].value = value;
  }
  uint32_t get(int64_t key) const { return slots_.empty() ? kNone : slots_[find(slots_, key)].value; }
  size_t size() const { return size_; }

 private:
  struct Slot {
    int64_t key = 0;
    uint32_t value = kNone;
  };
  static size_t find(const std::vector<Slot>& slots, int64_t key) {
    const size_t mask = slots.size() - 1;
    // the profiler's numbers run on: neighbours stay neighbours, blocks of them spread
    const auto number = static_cast<uint64_t>(key);
    size_t i = ((number >> 12) * 0x9e3779b97f4a7c15ull + number) & mask;
    while (slots[i].value != kNone && slots[i].key != key) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> bigger(slots_.empty() ? 1024 : slots_.size() * 2);
    for (const Slot& slot : slots_)
      if (slot.value != kNone) bigger[find(bigger, slot.key)] = slot;
    slots_.swap(bigger);
  }
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

class DbTexts {
 public:
  DbTexts(const SqliteDb& db, PartBuilder& builder);
  DbTexts(const DbTexts&) = delete;

  // The builder's id of STRING_IDS row `id`; 0 for NULL. A row that is missing reads "#<id>", and is counted.
  uint32_t of(const SqliteRows& rows, int column);
  uint32_t of(int64_t id);

 private:
  uint32_t look_up(int64_t id);
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  PartBuilder& builder_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  NumberMap known_;
};

}  // namespace stageline::ascend
