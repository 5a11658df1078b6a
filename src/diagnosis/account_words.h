// The account of a step's period in words: what the period is made of, and what of it no finding names.
#pragma once

#include "diagnosis/causes/causes.h"

namespace stageline {

// A line of the account of a step's period: compute and the schedule's own waits ("schedule"), what causes lost
// together ("named"), or one kind of what is left. All lines add up to step_ns.
struct AccountPart {
  std::string id;    // "schedule", "named", "tail", "between", "jitter", …
  std::string name;  // of a tail or a gap: its recorded name
  Text label;        // "optimizer", "jitter"
  double ns = 0;
};

struct Account {
  std::vector<AccountPart> parts;  // schedule, named, then the others by size
  Text sum;  // a sentence with the parts of at least 1 % and all others together; "" without parts
};
// Returns whether a part that no cause is named for takes kLargePart of the step or more.
bool much_is_left(const Account& account, double step_ns);
// Facts of the run that some lines need.
struct AccountFacts {
  bool rows_missing = false;
  // The part of the schedule's waits in which replicas wait for those that are given more micro-batches.
  double uneven_replicas_ns = 0;
};
// `reported`: ids of the lines that have a finding of their own.
Account account_of(const CauseList& causes, const std::set<std::string_view>& reported, const AccountFacts& facts);

// CauseList::left without the jitter that the saving of long sequences already includes: an even distribution removes
// jitter beyond the cost of the long ones. That part counts as a finding.
std::vector<AccountLine> undealt(const CauseList& causes);

}  // namespace stageline
