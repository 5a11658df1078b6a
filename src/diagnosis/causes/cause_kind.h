// A kind of cause, as the search, the breakdown, the order of findings, diff and tables use it. All kinds are listed in
// causes.def; each has a folder with its search and its words.
#pragma once

#include "diagnosis/causes/cause.h"

namespace stageline {

struct CauseScene;
struct Suspect;
struct Findings;
struct JudgeFacts;
struct KnownFacts;
class TellContext;
struct Telling;

// The source of its time, which decides whether the cause may be noise.
enum class Measured : uint8_t {
  kRecorded,  // the time itself was recorded: it is never chance
  kCounted,   // events were counted: they are real, and only their number per step is random
  kInferred,  // cells were compared, and differ by chance too
};

// The use that the search makes of a suspect.
enum class CauseUse : uint8_t {
  kCause,  // a cause, if it costs enough
  kLine,   // only a line of the breakdown
  kDrop,
};

struct CauseKind {
  // "slow_stage": the folder; suspicion.ID in words is what it is called where it is only suspected.
  std::string_view id;
  std::string_view name;  // "slow stage": what tables call it
  Measured measured = Measured::kInferred;
  // Lines of the breakdown that its time is taken from, at most three; with "replica-jitter" it makes replicas wait for
  // the slowest one.
  std::array<std::string_view, 3> takes_from = {};
  bool of_work = false;    // compute cells take longer: diff identifies changes of compute by it
  bool of_layers = false;  // its work is layers, which can be moved: it is named even where moving them saves little
  bool of_links = false;   // messages are slow: more micro-batches in flight hide a part of it
  bool of_events = false;  // single events that come in some steps; a long step may be one of them
  // Adds suspicions. Kinds are asked in the order of causes.def; later ones see what earlier ones divided out. Null:
  // another kind's search finds these too.
  void (*suspect)(CauseScene& scene, std::vector<Suspect>& out) = nullptr;
  // Decides on a suspicion, and may widen its error. Null: it is a cause if it costs enough.
  CauseUse (*judge)(Cause& cause, const JudgeFacts& facts) = nullptr;
  // Adds causes whose price is known without a replay of their own, after all others. Null: there are none.
  void (*known)(const KnownFacts& facts, std::vector<Cause>& out) = nullptr;
  // Puts causes that are reported as one into words, the first of them first.
  Telling (*tell)(std::span<const Cause* const> causes, const TellContext& context) = nullptr;

  bool takes(std::string_view line) const;
};

// A cause refers to its own kind, and the search of one may find another. Its folder defines the functions that its row
// of causes.def names.
#define CAUSE(id, ...)                                               \
  extern const CauseKind id##_cause;                                 \
  void suspect_##id(CauseScene& scene, std::vector<Suspect>& out);   \
  CauseUse judge_##id(Cause& cause, const JudgeFacts& facts);        \
  void known_##id(const KnownFacts& facts, std::vector<Cause>& out); \
  Telling tell_##id(std::span<const Cause* const> causes, const TellContext& context);
#include "diagnosis/causes/causes.def"

// All kinds, in the order of causes.def.
std::span<const CauseKind* const> cause_kinds();

}  // namespace stageline
