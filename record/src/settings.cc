#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace slr {
namespace {

// The first of the variables that holds a whole number; `fallback` when none does.
int64_t number_of(const char* const* variables, int64_t fallback) {
  for (; *variables; ++variables) {
    const char* text = getenv(*variables);
    if (!text || !*text) continue;
    char* end = nullptr;
    const long long value = strtoll(text, &end, 10);
    if (*end == '\0') return value;
  }
  return fallback;
}

uint32_t choose(uint32_t said, const char* variable, uint32_t fallback, uint32_t least, uint32_t most) {
  const char* const variables[] = {variable, nullptr};
  const int64_t value = said ? said : number_of(variables, fallback);
  return static_cast<uint32_t>(value < least ? least : value > most ? most : value);
}

void copy_text(char* to, size_t size, const char* text) {
  size_t n = strlen(text);
  if (n >= size) n = size - 1;
  memcpy(to, text, n);
  to[n] = '\0';
}

// "10:15": steps 10 to 15. Anything else is as if nothing were said.
void read_steps(const char* text, Settings& s) {
  s.first_step = s.stop_step = -1;
  if (!text || !*text) return;
  char* end = nullptr;
  const long long first = strtoll(text, &end, 10);
  if (end == text || *end != ':' || first < 0) return;
  const char* second = end + 1;
  const long long last = strtoll(second, &end, 10);
  if (end == second || *end != '\0' || last < first) return;
  s.first_step = first;
  s.stop_step = last < INT64_MAX ? last + 1 : last;
}

// Makes a name that can be part of a file's: letters, digits, - and _.
void make_plain(char* text) {
  for (; *text; ++text) {
    const char c = *text;
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'))
      *text = '_';
  }
}

}  // namespace

Settings resolve_settings(const slr_config* config) {
  static const char* const kRank[] = {"STAGELINE_RANK",    "RANK",    "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                                      "PADDLE_TRAINER_ID", "RANK_ID", nullptr};
  static const char* const kWorld[] = {"WORLD_SIZE",          "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
                                       "PADDLE_TRAINERS_NUM", "RANK_SIZE",    nullptr};
  static const char* const kJob[] = {"STAGELINE_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
  slr_config c = SLR_CONFIG_INIT;
  if (config && config->size >= sizeof c.size) {
    memcpy(&c, config, config->size < sizeof c ? config->size : sizeof c);
    c.size = sizeof c;
  }
  Settings s{};
  const char* dir = c.dir ? c.dir : getenv("STAGELINE_DIR");
  copy_text(s.dir, sizeof s.dir, dir && *dir ? dir : "stageline-rec");
  const char* job = c.job;
  for (const char* variable : kJob) {
    if (job && *job) break;
    job = getenv(variable);
    if (job && strcmp(job, "none") == 0) job = nullptr;  // torchrun's name of every run that was given none
  }
  copy_text(s.job, sizeof s.job, job ? job : "");
  if (gethostname(s.host, sizeof s.host - 1) != 0) copy_text(s.host, sizeof s.host, "host");
  make_plain(s.host);
  const int64_t rank = c.rank >= 0 ? c.rank : number_of(kRank, -1);
  s.rank = rank < 0 || rank >= 1 << 24 ? -1 : static_cast<int32_t>(rank);
  const int64_t world = c.world > 0 ? c.world : number_of(kWorld, 0);
  s.world = world < 0 || world > 1 << 24 ? 0 : static_cast<int32_t>(world);
  s.stage = c.stage, s.dp_rank = c.dp_rank;
  s.pp = c.pp, s.tp = c.tp, s.dp = c.dp, s.vp = c.vp;
  s.memory_mb = choose(c.memory_mb, "STAGELINE_MEM_MB", 64, 1, 4096);
  s.flush_ms = choose(c.flush_ms, "STAGELINE_FLUSH_MS", 1000, 1, 60'000);
  s.rotate_mb = choose(c.rotate_mb, "STAGELINE_ROTATE_MB", 256, 1, 1 << 20);
  s.rotate_s = choose(c.rotate_s, "STAGELINE_ROTATE_S", 3600, 1, 1 << 30);
  s.keep_files = choose(c.keep_files, "STAGELINE_KEEP", 0, 0, 1 << 20);
  s.ring_kb = choose(c.ring_kb, "STAGELINE_RING_KB", 256, 16, 1 << 14);
  while (s.ring_kb & (s.ring_kb - 1)) s.ring_kb &= s.ring_kb - 1;
  read_steps(getenv("STAGELINE_STEPS"), s);
  s.max_overhead = c.max_overhead;
  if (const char* text = getenv("STAGELINE_MAX_OVERHEAD"); c.max_overhead == 0 && text)
    s.max_overhead = strtod(text, nullptr);
  if (!(s.max_overhead < 0) && !(s.max_overhead > 0)) s.max_overhead = 0.001;
  const char* fork = getenv("STAGELINE_FORK");
  s.records_in_child = fork && strcmp(fork, "1") == 0;
  const char* graphs = getenv("STAGELINE_GRAPHS");
  s.graphs = graphs && strcmp(graphs, "1") == 0;
  return s;
}

}  // namespace slr
