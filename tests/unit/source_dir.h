// Where the checkout lies. In one source only, so that the others compile to the same bytes in every checkout
// and a compiler cache serves them all.
#pragma once

#include <string>

std::string source_dir();
