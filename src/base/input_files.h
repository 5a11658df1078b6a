// InputFiles: the files on disk that are being read. Measurements belong to the user, so no file that this program
// reads may become one of its outputs. OutputFile asks here before it uses a name (base/output_file.h).
//
// A file is identified by device and inode, never by its name: links, hard links and other spellings are the same file.
// Three kinds of files are protected. They are files that were opened for reading, files below a folder that a source
// names (also without a reader), and a database's write-ahead log and journal. Pages and pictures contain no
// measurement, so they are not protected: an earlier report.html among the logs may be written again. All functions may
// be called from any thread.
#pragma once

#include <sys/stat.h>

#include "base/vocabulary.h"

namespace stageline {

// Opens a file for reading and notes it. Returns a descriptor, or -1 with errno.
int open_input_file(const std::string& path);
// Reads a file of the program itself (a mark, a digest made earlier) without making it an input, so that an output may
// replace it. Returns nullopt when it cannot be read or is longer than `at_most` bytes.
std::optional<std::string> own_file(const std::string& path, size_t at_most = SIZE_MAX - 1);
// Called for each file that is opened for reading, and for each file of a source. A file that cannot be examined is
// left out.
void note_input_file(const std::string& path);
void note_input_descriptor(int fd, const std::string& path);
// Notes the file and the files that SQLite keeps next to it: PATH-wal, PATH-shm and PATH-journal.
void note_input_database(const std::string& path);

// Notes a file whose content was read, and not only its first bytes. This separates the files that were used from the
// rest of a folder.
void note_content_read(const std::string& path);
bool was_read(const std::string& path);
// Notes a file that could not be opened or not read to its end; the getter returns "" when there is no such note.
// Readers continue without a small file next to a measurement, but must report to the user that it was lost.
void note_input_failure(const std::string& path, const std::string& what);
std::string input_failure(const std::string& path);

// Returns the input file that `target` is (a path with its stat()); "" when it is none. Costs one look into a table.
std::string input_file_of(const std::string& target, const struct stat& st);

// While one lives, this thread notes no file: a look at what an output would replace makes no input of it.
class UnnotedReads {
 public:
  UnnotedReads();
  ~UnnotedReads();
  UnnotedReads(const UnnotedReads&) = delete;
  UnnotedReads& operator=(const UnnotedReads&) = delete;
};

// Returns true when these first bytes are those of a web page or a picture (HTML, SVG, PNG, PDF).
bool is_page_or_picture(std::string_view head);
bool holds_page_or_picture(const std::string& path);

// Checks paths that come from outside: from a page in a browser, or from an agent. They may lead only below certain
// folders.
inline constexpr size_t kMaxPathEntries = 1'000'000;

// Returns true when a real path is one of the `roots` (real paths of folders) or lies below one.
bool is_below(const std::vector<std::string>& roots, std::string_view real_path);

// Returns the real path of a file or folder below the roots. Everything in a folder is examined, because no link in it
// may lead out; a folder of more than `max_entries` entries is refused. 0 is for callers that do not read the folder:
// then its content is not examined. Errors: kNotFound, in words that follow a path; for a path outside, the message
// does not reveal if it exists. O(entries).
Result<std::string> path_below(const std::vector<std::string>& roots, const std::string& path,
                               size_t max_entries = kMaxPathEntries);

}  // namespace stageline
