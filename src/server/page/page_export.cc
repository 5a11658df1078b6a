#include "server/page/page_export.h"

#include "base/shell_word.h"
#include "exporters/chart/plan_panels.h"
#include "server/page/page_file.h"

namespace stageline {
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
  page.command = "stageline view" + shell_words(inputs);
  TRY(made, write_page_file(run, notes, path, page));
  if (written) written->push_back(path);
  return {};
}

}  // namespace stageline
