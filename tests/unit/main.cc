#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// Fontconfig keeps what it looked up until the process ends, behind pointers stored as offsets, which
// LeakSanitizer cannot follow. The amount does not grow with the number of charts.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig"; }
