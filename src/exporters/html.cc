#include "exporters/exporter.h"

namespace stageline {

extern const Exporter html_exporter = {.name = "html",
                                       .summary = "the run and its viewer in one page, as `stageline report` writes it",
                                       .extensions = {"html"},
                                       .write = nullptr,  // server/page/page_file.h writes it
                                       .one_axis = true,
                                       .is_page = true};

}  // namespace stageline
