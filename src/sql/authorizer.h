// What a query may do: read, call functions of a list, keep temporary tables and views. Everything else is refused,
// with words.
#pragma once

#include <string>

namespace stageline::sql {

// sqlite3_set_authorizer()'s callback; `stopped` (a Stopped) gets why, where it says no.
int authorize(void* stopped, int action, const char* first, const char* second, const char* database,
              const char* trigger);

}  // namespace stageline::sql
