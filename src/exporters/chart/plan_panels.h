// Draws below the cells of a plan's pipeline the bytes of each stage, as bars, and the front of plans.
//
//   Memory of each stage: stage 0 decides          Step time for less memory
//   ─ ─ ─┬─ ─ ─ ─ ─ ─ limit 80 GiB                  ──┐
//   ░░░  █ ░░░        ░ reserve and margin            └──●──┐
//   ███  █ ███        █ a part                              └──
#pragma once

#include "exporters/chart/chart_layout.h"

namespace stageline {

struct PlanPicture {
  // The parts of a bar, from its bottom.
  enum Part : uint8_t {
    kParameters,
    kGradients,
    kOptimizer,
    kActivations,
    kRecompute,
    kHead,
    kScratch,
    kTransient,
    kOther,
    kReserve,  // with what the error bar and fragmentation may add
    kParts
  };
  struct Piece {
    Part part;
    int32_t chunk;
    double bytes;
  };
  struct Bar {
    std::vector<Piece> pieces;
    double low, high;  // ends of the error bar of all pieces but the reserve
  };
  struct Point {
    double bytes;
    int64_t step_ns;
    bool chosen;
  };
  std::vector<Bar> bars;     // of each stage; empty where bytes are unknown
  std::vector<Point> front;  // by bytes, each faster than all before it
  int32_t decides = 0;       // the stage that needs most
  int32_t chunks = 1;
  double limit = 0;  // 0: none
  std::string json;  // the whole answer, which a page carries
};

void place_plan(const PlanPicture& picture, const Theme& theme, ChartLang lang, const MeasureText& measure,
                ChartLayout& layout);

}  // namespace stageline
