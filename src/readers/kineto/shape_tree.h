// Parses events by predicting their shape.
//
// A trace of millions of events has a few dozen shapes: the same keys in the same order with the same blanks between
// them. Cut at its values, an event is a list of literal texts; all events seen so far form a tree of them:
//
//   {⏎    "ph": "X", "cat": "cpu_op", "name": "  ─name─  ", "pid":   ─pid─  , "tid":  …  ─dur─  ,⏎ "args": { …
//                                                                                      └──  }⏎  }   (end)
//   {⏎    "ph": "s", "id":  ─id─  , "pid":  …
//
// Parsing walks the tree: compare the literal (16 bytes at a time), read the value that must follow, go on with the
// child that followed last time. No token is classified and no key is looked up. An event that fits no branch is parsed
// by the general parser and then added to the tree, so the tree never decides what is valid. An event that it accepts
// has the same fields as from the general parser (a test compares both on random events).
#pragma once

#include "readers/common/rows/arg_keys.h"

namespace stageline::kineto {

class ShapeTree {
 public:
  ShapeTree();

  // Returns the end of the event that begins at `p` ('{') and fills `event`; nullptr when no branch of the tree fits.
  // At least 64 bytes must be readable after `end`. An event that is not complete before `end` fits no branch.
  const char* match(const char* p, const char* end, rows::Event& event);

  // Adds the shape of a complete event that the general parser accepted. Events with escapes, or with values of unusual
  // types, are not learnt. For metadata and counters the args are kept as text.
  void learn(std::string_view text);

  size_t node_count() const { return nodes_.size(); }

 private:
  enum class Action : uint8_t {
    kEnd,
    kTs,
    kDur,
    kName,
    kPid,
    kTid,
    kId,
    kBinding,
    kInteger,     // a whole number for one of Event's fields
    kArgText,     // any other argument; set_arg stores it
    kArgArray,    // an array that is kept as text; set_arg stores it
    kArgsText,    // all args of metadata and counters, as text
    kSkipText,    // a quoted text
    kSkipScalar,  // number, true, false, null
    kSkipNested,  // array or object
  };
  struct Node {
    uint32_t literal = 0, literal_size = 0;  // place in literals_
    Action action = Action::kEnd;
    rows::ArgKey key = rows::ArgKey::kNone;
    bool quoted = false;  // the value is a string
    char phase = '\0';    // set when this literal contains the phase
    int32_t category = -1;
    uint32_t hot = 0;  // the child that fitted last time
    std::vector<uint32_t> children;
  };
  struct Step;  // a literal and what follows it, used while learning
  class Cutter;

  const char* act(const Node& node, const char* p, const char* end, rows::Event& event);
  uint32_t child_for(uint32_t parent, std::string_view literal, const Step& step);

  std::vector<Node> nodes_;
  std::string literals_;
  std::vector<std::unique_ptr<std::string>> categories_;  // texts do not move, since events point into them
};

}  // namespace stageline::kineto
