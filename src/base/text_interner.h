// TextInterner: maps distinct texts to dense ids, for parsers that meet the same few hundred texts a million times. It
// is a flat table of (hash, id); the texts lie in blocks that never move. Id 0 is the empty text. The model uses
// StringPool; this class is for inner loops, and its ids are mapped to the pool's at the end.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

// Returns a fast 64-bit hash of any text. It does not resist chosen collisions, and it must not be stored anywhere.
inline uint64_t quick_hash(std::string_view text) {
  constexpr uint64_t kA = 0x9e3779b97f4a7c15ull, kB = 0xd6e8feb86659fd93ull;
  const auto load8 = [](const char* p) {
    uint64_t v;
    std::memcpy(&v, p, 8);
    return v;
  };
  const auto mix = [](uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  const char* p = text.data();
  size_t n = text.size();
  // Above all bytes of a short text: as the lowest byte, it made "2" and "12" one.
  uint64_t h = kA ^ static_cast<uint64_t>(n) << 32;
  if (n >= 16) {
    for (; n > 16; n -= 16, p += 16) h = mix(load8(p) ^ h, load8(p + 8) ^ kB);
    return mix(mix(load8(p + n - 16) ^ h, load8(p + n - 8) ^ kB), kA);
  }
  uint64_t a = 0, b = 0;
  if (n >= 8) {
    a = load8(p);
    b = load8(p + n - 8);
  } else if (n >= 4) {
    uint32_t x, y;
    std::memcpy(&x, p, 4);
    std::memcpy(&y, p + n - 4, 4);
    a = x;
    b = y;
  } else if (n > 0) {
    a = static_cast<unsigned char>(p[0]) | static_cast<uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
        static_cast<uint64_t>(static_cast<unsigned char>(p[n - 1])) << 16;
  }
  return mix(mix(a ^ h, b ^ kB), kA);
}

class TextInterner {
 public:
  TextInterner() : slots_(16) { intern({}); }
  TextInterner(TextInterner&&) = default;
  TextInterner& operator=(TextInterner&&) = default;

  uint32_t intern(std::string_view text) {
    const uint64_t hash = quick_hash(text);
    const size_t mask = slots_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.id_plus_1 == 0) return add(i, hash, text);
      if (slot.hash != static_cast<uint32_t>(hash >> 32)) continue;
      if (texts_[slot.id_plus_1 - 1] == text) return slot.id_plus_1 - 1;
    }
  }
  std::string_view text(uint32_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    uint32_t hash = 0, id_plus_1 = 0;
  };

  uint32_t add(size_t slot, uint64_t hash, std::string_view text) {
    if ((texts_.size() + 1) * 2 > slots_.size()) {
      std::vector<Slot> bigger(slots_.size() * 2);
      for (uint32_t id = 0; id < texts_.size(); ++id) place(bigger, quick_hash(texts_[id]), id);
      slots_ = std::move(bigger);
      slot = free_slot(slots_, hash);
    }
    if (block_left_ < text.size()) {
      // Small at first: a file of 2 MB may have 40 000 interners.
      const size_t next = blocks_.size() < 8 ? kFirstBlock << blocks_.size() : kBlock;
      block_left_ = text.size() > next / 4 ? text.size() : next;
      blocks_.emplace_back(new char[block_left_]);
      block_at_ = blocks_.back().get();
    }
    char* const at = block_at_;
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    block_at_ += text.size();
    block_left_ -= text.size();
    const auto id = static_cast<uint32_t>(texts_.size());
    texts_.emplace_back(at, text.size());
    slots_[slot] = {static_cast<uint32_t>(hash >> 32), id + 1};
    return id;
  }
  static size_t free_slot(const std::vector<Slot>& slots, uint64_t hash) {
    const size_t mask = slots.size() - 1;
    size_t i = hash & mask;
    while (slots[i].id_plus_1 != 0) i = (i + 1) & mask;
    return i;
  }
  static void place(std::vector<Slot>& slots, uint64_t hash, uint32_t id) {
    slots[free_slot(slots, hash)] = {static_cast<uint32_t>(hash >> 32), id + 1};
  }

  static constexpr size_t kBlock = size_t{1} << 16, kFirstBlock = size_t{1} << 8;
  std::vector<Slot> slots_;
  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* block_at_ = nullptr;
  size_t block_left_ = 0;
};

}  // namespace stageline
