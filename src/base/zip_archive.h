// A ZIP archive that is read like a folder: list_zip() makes its members known, and Input then opens "ARCHIVE/MEMBER".
// Members are stored or deflated, of any length (zip64). Nothing is unpacked to disk.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct ZipMember {
  std::string archive, name;                         // "run.zip", "machine0/rank-0.json"
  int64_t at = 0, packed_bytes = 0, text_bytes = 0;  // where its data begin in the archive, and their lengths
  uint32_t crc = 0;                                  // of the text
  bool deflated = false;
  const char* fault = nullptr;  // the sentence on a member that cannot be read
};

// Returns true for a file that begins with a member of an archive.
bool is_zip(const std::string& path);
// Returns the files of an archive in its order. Errors: kIo; kBadInput when the list at the end is missing or
// contradicts the rest, when members overlap, or when a name is there twice or leads out of the archive; kLimit. A
// member that is encrypted or packed otherwise is listed, with its fault.
Result<std::vector<ZipMember>> list_zip(const std::string& path);

// Returns the member that is known under a name: "run.zip/machine0/rank-0.json".
std::optional<ZipMember> zip_member(const std::string& path);
// Returns the file on disk that a name stands for: the archive of a known member, else the name itself.
std::string disk_path(const std::string& path);

}  // namespace stageline
