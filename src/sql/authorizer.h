// The rights of a query: to read, call functions of a list, and keep temporary tables and views. Everything else is
// refused, and the refusal gives the reason.
#pragma once

namespace stageline::sql {

// The callback for sqlite3_set_authorizer(). `stopped` is a Stopped, which gets the reason of a refusal.
int authorize(void* stopped, int action, const char* first, const char* second, const char* database,
              const char* trigger);

}  // namespace stageline::sql
