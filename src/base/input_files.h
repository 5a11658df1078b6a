// InputFiles: which files on disk are being read. A measurement belongs to its user, so nothing that this program reads
// may become one of its outputs: OutputFile asks here before it takes a name (base/output_file.h).
//
// A file is known by device and inode, never by its name: links, hard links and other spellings are the same file.
// Known are the files that were opened for reading, every file below a folder that a source names (also those that no
// reader takes), and what belongs to a database (its write-ahead log and journal). Pages and pictures hold no
// measurement: an earlier report.html among the logs may be written again.
// All functions may be called from any thread.
#pragma once

#include <sys/stat.h>

#include <string>

namespace stageline {

// Called for each file that is opened for reading, and for each file of a source. What cannot be looked at is left out.
void note_input_file(const std::string& path);
void note_input_descriptor(int fd, const std::string& path);
// The file, and what SQLite keeps beside one: PATH-wal, PATH-shm, PATH-journal.
void note_input_database(const std::string& path);

// Files whose content was read, not just their first bytes: by these the rest of a folder is told apart.
void note_content_read(const std::string& path);
bool was_read(const std::string& path);
// Files that could not be opened, or not read to their end, by whoever asked; "" for none. Readers survive the loss of
// a small file beside a measurement; that it was lost has to be said all the same.
void note_input_failure(const std::string& path, const std::string& what);
std::string input_failure(const std::string& path);

// The input that `target`, a path with its stat(), is; "" when it is none. Cost: a look into a table.
std::string input_file_of(const std::string& target, const struct stat& st);

// Whether these first bytes are those of a web page or a picture (HTML, SVG, PNG, PDF).
bool is_page_or_picture(std::string_view head);

}  // namespace stageline
