#include "unit/source_dir.h"

std::string source_dir() { return STAGELINE_SOURCE_DIR; }
