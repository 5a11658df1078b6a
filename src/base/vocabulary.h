// What every file may say without naming a header: the standard library, results, numbers, texts, arrays by an enum. It
// is precompiled. Every header has it, by itself or by another; a source has it by its own header or its room's.
#pragma once

#include "base/by_enum.h"
#include "base/number.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/sort.h"
#include "base/std.h"
#include "base/text.h"
