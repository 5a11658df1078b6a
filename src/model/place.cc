#include "model/place.h"

namespace stageline {
namespace {

constexpr std::array<std::string_view, 16> kNames = {
    "run",   "stage",         "ranks",      "replicas",  "host",     "link", "micro_batches", "cells",
    "steps", "between_steps", "collective", "optimizer", "operator", "call", "frame",         "stream"};

constexpr size_t kMaxRanksInKey = 8;

std::string number(int32_t n) { return std::to_string(n); }

// One word, whatever was recorded.
std::string named(const std::string& word, const std::string& name) {
  std::string key = word + (name.empty() ? "" : ":") + name;
  for (char& c : key)
    if (c == ' ' || c == ',' || c == ';' || c == '/') c = '_';
  return key;
}

// "rank:5", "ranks:4+5+6"; only the word where none is known.
std::string of_ranks(const std::string& word, const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return word;
  std::string key = word + ":" + number(ranks.front());
  for (size_t i = 1; i < std::min(ranks.size(), kMaxRanksInKey); ++i) key += "+" + number(ranks[i]);
  return key + (ranks.size() > kMaxRanksInKey ? "+…" : "");
}

std::string span_key(const std::string& one, const std::string& several, const Place& p) {
  return p.first == kUnknown ? several : one + ":" + number(p.first);
}

// Returns true when two values differ. Either may be unknown to its run, and then they do not.
bool differ(int32_t a, int32_t b) { return a != b && a != kUnknown && b != kUnknown; }

}  // namespace

std::string_view place_kind_name(PlaceKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool same_place(const Place& a, const Place& b) {
  if (a.kind != b.kind || a.stage != b.stage || a.from_stage != b.from_stage || a.first != b.first) return false;
  if (differ(a.replica, b.replica)) return false;
  if (!a.name.empty() && !b.name.empty() && a.name != b.name) return false;
  return a.ranks.empty() || b.ranks.empty() || a.ranks == b.ranks;
}

std::vector<Place> shared_places(const std::vector<Place>& some, const std::vector<Place>& others) {
  std::vector<Place> shared;
  for (const Place& place : some) {
    if (place.kind == PlaceKind::kHost && place.ranks.empty()) continue;
    const bool also = std::ranges::any_of(
        others, [&](const Place& other) { return place.ranks == other.ranks && same_place(place, other); });
    if (also) shared.push_back(place);
  }
  return shared;
}

std::string key_of(const Place& p) {
  switch (p.kind) {
    case PlaceKind::kStage: return "stage:" + number(p.stage);
    case PlaceKind::kRanks: return of_ranks(p.ranks.size() > 1 ? "ranks" : "rank", p.ranks);
    case PlaceKind::kReplicas: return p.replica == kUnknown ? "replicas" : "replica:" + number(p.replica);
    case PlaceKind::kHost: return of_ranks("host", p.ranks);
    case PlaceKind::kLink:
      if (p.stage == kUnknown) return p.ranks.empty() ? "messages" : of_ranks("link", p.ranks);
      return "link:" + number(p.from_stage) + "-" + number(p.stage);
    case PlaceKind::kMicroBatches: return span_key("micro-batch", "micro-batches", p);
    case PlaceKind::kCells:
      if (p.first == kUnknown) return "stage:" + number(p.stage);
      return "cell:" + number(p.stage) + "." + std::string(kind_code(p.cells)) + number(p.first);
    case PlaceKind::kSteps: return span_key("step", "steps", p);
    case PlaceKind::kBetweenSteps: return named("between-steps", dashed(p.name));
    case PlaceKind::kCollective: return named("collective", dashed(p.name));
    case PlaceKind::kOptimizer: return "optimizer";
    case PlaceKind::kRun: return "run";
    case PlaceKind::kOperator:
    case PlaceKind::kCall:
    case PlaceKind::kFrame:
    case PlaceKind::kStream: break;
  }
  return named(std::string(place_kind_name(p.kind)), p.name);
}

}  // namespace stageline
