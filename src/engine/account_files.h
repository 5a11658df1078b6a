// Every file that the user pointed at ends in one of three ways: read, passed over (and why), or damaged (and where).
// Readers say what they found in the files that they took. What is said here is of the others: a rank whose file was
// cut in its first block, zeroed or emptied is not recognised by any reader, and would vanish without a word.
#pragma once

#include "model/trace.h"
#include "readers/reader.h"

namespace stageline {

// Adds to the trace's diagnostics, after reading:
//   source.damaged      loss, once for each file: it cannot be decompressed, is empty or zeros under a name like those
//                       that were read, or does not begin as they do
//   source.passed_over  info: names and reasons of the files that hold something else
//   source.ends_early   loss, once for each file: its last step has fewer cells than its others have, and other ranks
//                       have that step whole or later ones
// `all_wanted`: nothing (--devices) left files of this format out on purpose.
void account_files(const Source& source, bool all_wanted, Trace& trace);
// Of them source.ends_early alone, where the reader accounts for its files itself.
void account_early_ends(Trace& trace);

// The file of a source that no reader knows, with what is wrong with it: of the first that is damaged. Nothing where
// the files are whole and simply something else.
std::optional<Error> damage_of(const Source& source);

// An error about a whole folder, with the names of its files, so that the one at fault is among them.
Error with_names(Error error, const Source& source);

}  // namespace stageline
