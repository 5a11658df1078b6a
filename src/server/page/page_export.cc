#include "server/page/page_export.h"

#include <algorithm>

#include "base/text.h"
#include "exporters/chart/plan_panels.h"
#include "server/page/page_file.h"

namespace stageline {
namespace {

// A path as a shell reads it: quoted where it has characters that are not safe bare.
std::string shell_word(const std::string& path) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80 || std::string_view("/._-+,:=@%").find(c) != std::string_view::npos;
  };
  if (!path.empty() && std::ranges::all_of(path, bare)) return path;
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string view_command(const std::vector<std::string>& paths) {
  std::string command = "stageline view";
  for (const std::string& path : paths) command += " " + shell_word(valid_utf8(path));
  return command;
}

Status export_run(const std::shared_ptr<const Run>& run, Diagnostics& notes, const std::string& path,
                  std::string_view to, const ExportOptions& options, const std::vector<std::string>& inputs,
                  std::vector<std::string>* written) {
  const Result<const Exporter*> exporter = choose_exporter(to, path);
  if (!exporter || !(*exporter)->is_page) return export_trace(run, notes, path, to, options, written);
  PageOptions page;
  page.lang = options.lang;
  page.dark = options.dark;
  page.title = options.title;
  page.ghosts = options.ghosts;
  page.paths = inputs;
  if (options.plan) page.plan = options.plan->json;
  page.command = view_command(inputs);
  TRY(made, write_page_file(run, notes, path, page));
  if (written) written->push_back(path);
  return {};
}

}  // namespace stageline
