// A tool that listens to NVTX and mstx as others do: with handles of its own, and only some entries of each table.
#include <cstring>

#include "inject/nvtx_abi.h"

using namespace slr::nvtx;

extern "C" {

struct FakeTool {
  int pushes = 0, pops = 0, starts = 0, ends = 0, domains = 0, strings = 0, mstx_starts = 0, mstx_ends = 0;
  int foreign = 0;  // handles that it never gave
};
static FakeTool tool;
static char a_domain, a_string;
FakeTool* fake_tool() { return &tool; }

static int push(const char*) { return tool.pushes++; }
static int pop() { return tool.pops++; }
static uint64_t start(const char*) { return 70'000 + static_cast<uint64_t>(tool.starts++); }
static void end(uint64_t id) {
  tool.foreign += id < 70'000 || id >= 70'000 + static_cast<uint64_t>(tool.starts);
  ++tool.ends;
}
static void* create(const char*) { return ++tool.domains, &a_domain; }
static void* register_string(void* domain, const char*) {
  tool.foreign += domain != &a_domain;
  return ++tool.strings, &a_string;
}
static int push_in(void* domain, const Attributes* a) {
  tool.foreign += domain != &a_domain || (a->message_type == kRegistered && a->message != &a_string);
  return tool.pushes++;
}

int InitializeInjectionNvtx2(GetExportTable get) {
  const auto* callbacks = static_cast<const Callbacks*>(get(kCallbacks));
  FunctionTable table = nullptr;
  unsigned size = 0;
  callbacks->get_module_function_table(kCore, &table, &size);
  *table[kRangePushA] = reinterpret_cast<Function>(push);
  *table[kRangePop] = reinterpret_cast<Function>(pop);
  *table[kRangeStartA] = reinterpret_cast<Function>(start);
  *table[kRangeEnd] = reinterpret_cast<Function>(end);
  callbacks->get_module_function_table(kCore2, &table, &size);
  *table[kDomainCreateA] = reinterpret_cast<Function>(create);
  *table[kDomainRegisterStringA] = reinterpret_cast<Function>(register_string);
  *table[kDomainRangePushEx] = reinterpret_cast<Function>(push_in);
  return 1;
}

static uint64_t mstx_start(const char*, void*) { return 900'000 + static_cast<uint64_t>(tool.mstx_starts++); }
static void mstx_end(uint64_t id) {
  tool.foreign += id < 900'000;
  ++tool.mstx_ends;
}
int InitInjectionMstx(int (*get)(unsigned, Function***, unsigned*)) {
  Function** table = nullptr;
  unsigned size = 0;
  if (get(1, &table, &size) != 0) return 1;
  *table[2] = reinterpret_cast<Function>(mstx_start);
  *table[3] = reinterpret_cast<Function>(mstx_end);
  return 0;
}
}
