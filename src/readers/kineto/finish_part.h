// From rows in file order to a Part: lanes in order, and every fact that many questions need.
#pragma once

#include "model/trace.h"
#include "readers/kineto/file_rows.h"

namespace stageline::kineto {

// What stands between a file's own ids and the trace's.
struct FileNames {
  std::vector<std::string> names;  // by name id
  std::vector<CategoryInfo> categories;
};

// Builds the part with the file's own name and category ids; several files can do so at once. `base_ns` is
// added to every time. Frees `rows` as it goes.
FileNames build_part(FileRows rows, int64_t base_ns, Part& part);

// Gives the names and categories to the trace; `name_map` and `category_map` are then from the file's ids to
// the trace's. In rank order, one at a time.
void adopt_names(const FileNames& names, Trace& trace, std::vector<StringId>& name_map,
                 std::vector<uint8_t>& category_map);

// Rewrites the part's ids; several parts can do so at once.
void rename_part(const std::vector<StringId>& name_map, const std::vector<uint8_t>& category_map, Part& part);

}  // namespace stageline::kineto
