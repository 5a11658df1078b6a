#include "exporters/html/html.h"

#include "base/gzip_bytes.h"
#include "base/html_text.h"
#include "base/number.h"
#include "base/output_file.h"
#include "exporters/html/payload.h"
#include "exporters/html/report_json.h"
#include "exporters/html/web_bundle.h"

namespace stageline {
namespace {

// In a JSON text "<" stands only inside strings. Escaped, no "</script" can end the block early and
// no "<!--" can hide its end.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

// For readers without scripts: the words of the first screen.
std::string plain_words(const ExportInput& input, const CellPayload& payload) {
  const bool zh = input.options.lang == "zh";
  std::string out;
  const auto line = [&](const char* tag, const std::string& en, const std::string& chinese) {
    const std::string& text = zh && !chinese.empty() ? chinese : en;
    if (!text.empty()) out += std::string("<") + tag + ">" + html_text(text) + "</" + tag + ">\n";
  };
  line("h1", input.headline.title_en, input.headline.title_zh);
  line("p", input.headline.lead_en, input.headline.lead_zh);
  for (const Finding& finding : input.findings) {
    line("h2", finding.title_en, finding.title_zh);
    line("p", finding.detail_en, finding.detail_zh);
  }
  if (payload.cell_count < input.trace.cells.size()) {
    const std::string kept = grouped(static_cast<int64_t>(payload.cell_count));
    const std::string all = grouped(static_cast<int64_t>(input.trace.cells.size()));
    line("p", "This page holds the first " + kept + " of " + all + " cells.",
         "本页只含前 " + kept + " 个单元，共 " + all + " 个。");
  }
  line("p", "The chart and the tables need JavaScript.", "图和表需要启用 JavaScript。");
  return out;
}

Status write(const ExportInput& input, const std::string& path) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  file->write(html_report(input));
  return file->commit();
}

}  // namespace

std::string html_report(const ExportInput& input, const HtmlLimits& limits) {
  const Theory* theory = input.theory && input.options.ghosts != Ghosts::kOff ? &input.theory() : nullptr;
  const CellPayload payload = make_cell_payload(input.trace, limits.cells, theory);
  const std::string title = input.options.title.empty() ? input.trace.description : input.options.title;
  std::string page;
  page += "<!doctype html>\n<html lang=\"";
  page += input.options.lang == "zh" ? "zh-CN" : "en";
  page += "\">\n<head>\n<meta charset=\"utf-8\">\n";
  // Nothing may be fetched, and nothing may run but the two texts below.
  page += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '";
  page += web_report_js_hash();
  page += "'; style-src '";
  page += web_report_css_hash();
  page += "'; base-uri 'none'; form-action 'none'\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"color-scheme\" content=\"light dark\">\n";
  page += "<meta name=\"generator\" content=\"Stageline " STAGELINE_VERSION "\">\n<title>";
  page += html_text(title.empty() ? "Stageline" : title + " – Stageline");
  page += "</title>\n<style>";
  page += web_report_css();
  page += "</style>\n</head>\n<body>\n<noscript>\n";
  page += plain_words(input, payload);
  page += "</noscript>\n<div id=\"app\"></div>\n<script type=\"application/json\" id=\"report\">";
  page += script_safe(report_json(input, payload, limits));
  page += "</script>\n<script type=\"application/octet-stream\" id=\"cells\">";
  page += base64(gzip_bytes(payload.bytes));
  page += "</script>\n<script>";
  page += web_report_js();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

extern const Exporter html_exporter;
const Exporter html_exporter = {
    "html",   "one page with findings, chart, tables and flaws one below the other; opens anywhere, needs no network",
    {"html"}, false,
    true,     write,
    false,    false,
    "",       true};

}  // namespace stageline
