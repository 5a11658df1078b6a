// Reads debug annotations: arguments of events. Annotations that Kineto's JSON has too set the same facts; those of
// Stageline's exporter make cells; all others are skipped.
#pragma once

#include "base/text_interner.h"
#include "model/kind.h"
#include "readers/perfetto/sequence.h"

namespace stageline::pftrace {

// The fields of a cell that Stageline's exporter writes.
struct OwnCell {
  uint32_t present = 0;  // bits by OwnKey
  CellKind kind = CellKind::kOther;
  int64_t step = -1, stage = -1, chunk = -1, micro_batch = -1, rank = -1, dp = -1;
  uint32_t operation = 0;  // the name that the source gave it, an interned text; 0: the event's own
  bool has(OwnKey key) const { return (present >> static_cast<unsigned>(key) & 1) != 0; }
  bool is_cell() const { return has(OwnKey::kKind) && has(OwnKey::kRank) && has(OwnKey::kDuration); }
};

struct Sequence;

// Texts that facts view into live until the next clear().
class Annotations {
 public:
  // `texts`: the interned ones, by id.
  explicit Annotations(const TextInterner& texts) : texts_(texts) {}
  void clear() { used_ = 0; }
  void read(std::string_view annotation, const Sequence& sequence, rows::Event& event, OwnCell& own);
  // A value that came as text: extra data of device work, a launch's argument.
  void set(AnnotationName name, std::string_view text, rows::Event& event);
  // A text that lives until clear().
  std::string& scratch();

 private:
  void append_value(std::string& out, std::string_view annotation, const Sequence& sequence, int depth) const;

  const TextInterner& texts_;
  std::deque<std::string> pool_;
  size_t used_ = 0;
};

}  // namespace stageline::pftrace
