// Accounts for every file that the user pointed at: it was read, passed over (and why), or is damaged (and where).
// Readers report on the files that they took; this reports on the others. A rank whose file was cut in its first block,
// zeroed or emptied is recognised by no reader, and would otherwise vanish without a word.
#pragma once

#include "readers/reader.h"

namespace stageline {

// Adds to the trace's diagnostics, after it has been read:
//   source.damaged      loss, once for each file: it cannot be decompressed, is empty or zeros under a name like those
//                       that were read, or does not begin as they do
//   source.passed_over  info: names and reasons of the files that hold something else
//   source.identical    warning, for each kind: the files of two ranks have the same bytes
//   source.uneven       info, for each kind of files: others of the run have one that was read, these ranks do not
//   source.missing_ranks  warning: ranks that others name, or that lack in the row of numbers, have no file
//   source.ends_early   loss, once for each file: its last step has fewer cells than its others have, and other ranks
//                       have that step whole or later ones
// `all_wanted`: the user did not leave out files of this format on purpose (--devices). `by_reader`: the reader reports
// itself what is wrong with files of its format; the other files are passed over here.
void account_files(const Source& source, bool all_wanted, bool by_reader, Trace& trace);

// For a source that no reader accepts: returns the problem of the first damaged file, or nullopt if the files are
// intact but of another format.
std::optional<Error> damage_of(const Source& source);

// Returns an error about a whole folder with the names of its files added, so that the faulty file is among them.
Error with_names(Error error, const Source& source);

}  // namespace stageline
