#include "base/zip_archive.h"

#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "base/input_files.h"

namespace stageline {
namespace {

// The layout is that of PKWARE's APPNOTE.TXT 6.3. Numbers are little-endian.
constexpr std::string_view kLocal = "PK\x03\x04", kEntry = "PK\x01\x02", kEnd = "PK\x05\x06", kEnd64 = "PK\x06\x06",
                           kLocator64 = "PK\x06\x07";
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr int64_t kMaxCommentBytes = 65535, kMaxListBytes = int64_t{1} << 26;
constexpr int64_t kLong16 = 0xffff, kLong32 = 0xffffffff;  // the number is in the fields of zip64
constexpr int64_t kEncrypted = 1 << 0 | 1 << 6 | 1 << 13, kStored = 0, kDeflated = 8;

struct Known {
  std::mutex mutex;
  std::map<std::string, ZipMember> members;
};
Known& known() {
  static Known* const all = new Known();  // it must outlive every thread that may still read
  return *all;
}

// Returns the number of `size` bytes at a place; -1 where the bytes end before, or where it is too large for any file.
int64_t number(std::string_view bytes, size_t at, size_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return -1;
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value > INT64_MAX / 2 ? -1 : static_cast<int64_t>(value);
}

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), fd_(open_input_file(path)) {
    struct stat st;
    if (fd_ >= 0 && fstat(fd_, &st) == 0) size_ = st.st_size;
  }
  Archive(const Archive&) = delete;
  ~Archive() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool begins_as_zip() const { return fd_ >= 0 && read(0, kLocal.size()) == kLocal; }

  Result<std::vector<ZipMember>> list() const {
    TRY(end, find_list());
    const auto& [list, count] = *end;
    std::string_view rest = list;
    std::vector<ZipMember> out;
    std::vector<std::pair<int64_t, int64_t>> extents;
    std::set<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t name_size = number(rest, 28, 2), extra_size = number(rest, 30, 2), note_size = number(rest, 32, 2);
      const size_t size = kEntryBytes + name_size + extra_size + note_size;
      if (!rest.starts_with(kEntry) || rest.size() < kEntryBytes || size > rest.size())
        return bad("has a list of files that ends after " + std::to_string(i) + " of " + std::to_string(count));
      ZipMember member{path_, std::string(rest.substr(kEntryBytes, name_size))};
      const int64_t local_at =
          take_entry(rest.substr(0, size), rest.substr(kEntryBytes + name_size, extra_size), member);
      rest.remove_prefix(size);
      if (member.name.ends_with('/')) continue;
      const std::string local = read(local_at, kLocalBytes);
      member.at = local_at + static_cast<int64_t>(kLocalBytes) + number(local, 26, 2) + number(local, 28, 2);
      if (!local.starts_with(kLocal) || local.size() < kLocalBytes || member.packed_bytes < 0 ||
          member.text_bytes < 0 || member.packed_bytes > size_ - member.at)
        return bad("does not hold " + member.name + " where its list says");
      if (!stays_inside(member.name)) return bad("has a file whose name leads out of it: " + member.name);
      if (!names.insert(member.name).second) return bad("has two files of one name: " + member.name);
      extents.emplace_back(local_at, member.at + member.packed_bytes);
      out.push_back(std::move(member));
    }
    // Members that share their bytes would unpack to any multiple of the archive.
    std::ranges::sort(extents);
    const auto overlap = [](const auto& a, const auto& b) { return b.first < a.second; };
    if (std::ranges::adjacent_find(extents, overlap) != extents.end()) return bad("has files that overlap each other");
    return out;
  }

 private:
  Error bad(const std::string& what) const {
    return make_error(ErrorCode::kBadInput, "this archive (ZIP) " + what,
                      "copy it once more, whole, or unpack it and name the folder", {path_});
  }

  // Reads as much of [at, at + size) as there is.
  std::string read(int64_t at, size_t size) const {
    std::string out(size, '\0');
    const ssize_t n = at < 0 ? 0 : ::pread(fd_, out.data(), size, at);
    out.resize(std::max<ssize_t>(n, 0));
    return out;
  }

  static bool stays_inside(const std::string& name) {
    if (name.find('\0') != std::string::npos) return false;
    return std::ranges::none_of(split(name, '/'),
                                [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
  }

  // Returns the entries of the list of members, and how many they are.
  Result<std::pair<std::string, int64_t>> find_list() const {
    if (fd_ < 0) return make_error(ErrorCode::kIo, std::string("cannot open: ") + strerror(errno), "", {path_});
    const int64_t tail_at = std::max<int64_t>(0, size_ - static_cast<int64_t>(kEndBytes) - kMaxCommentBytes);
    const std::string tail = read(tail_at, static_cast<size_t>(size_ - tail_at));
    // The comment behind the end may contain the same letters, but does not then reach to the end of the file.
    size_t end = tail.size() < kEndBytes ? std::string::npos : tail.rfind(kEnd, tail.size() - kEndBytes);
    while (end != std::string::npos && end + kEndBytes + number(tail, end + 20, 2) != tail.size())
      end = end == 0 ? std::string::npos : tail.rfind(kEnd, end - 1);
    if (end == std::string::npos) return bad("was cut: the list of its files, at its end, is missing");
    int64_t count = number(tail, end + 10, 2), size = number(tail, end + 12, 4), at = number(tail, end + 16, 4);
    if (count == kLong16 || size == kLong32 || at == kLong32) {
      const auto locator_at = tail_at + static_cast<int64_t>(end) - static_cast<int64_t>(kLocator64Bytes);
      const std::string locator = read(locator_at, kLocator64Bytes);
      const std::string more = read(number(locator, 8, 8), kEnd64Bytes);
      if (!locator.starts_with(kLocator64) || !more.starts_with(kEnd64)) return bad("has no end of the form zip64");
      count = number(more, 32, 8), size = number(more, 40, 8), at = number(more, 48, 8);
    }
    if (size > kMaxListBytes)
      return make_error(ErrorCode::kLimit, "the archive's list of files is too long", "", {path_});
    std::string list = read(at, static_cast<size_t>(std::max<int64_t>(0, size)));
    if (count < 0 || std::ssize(list) != size) return bad("has a list of files that lies outside of it");
    return std::pair(std::move(list), count);
  }

  // Fills a member from its entry, and returns where it begins. Numbers that are too long for the entry are in its
  // extra fields, in a fixed order.
  static int64_t take_entry(std::string_view entry, std::string_view extra, ZipMember& member) {
    const int64_t flags = number(entry, 8, 2), method = number(entry, 10, 2);
    member.crc = static_cast<uint32_t>(number(entry, 16, 4));
    member.packed_bytes = number(entry, 20, 4);
    member.text_bytes = number(entry, 24, 4);
    int64_t local_at = number(entry, 42, 4);
    for (int64_t size = 0; (size = number(extra, 2, 2)) >= 0;
         extra.remove_prefix(std::min<size_t>(4 + size, extra.size()))) {
      size_t at = 4;
      for (int64_t* const value : {&member.text_bytes, &member.packed_bytes, &local_at})
        if (number(extra, 0, 2) == 1 && *value == kLong32) *value = number(extra, at, 8), at += 8;
    }
    member.deflated = method == kDeflated;
    if ((flags & kEncrypted) != 0) member.fault = "damage.member_encrypted";
    else if (method != kStored && method != kDeflated) member.fault = "damage.member_method";
    return local_at;
  }

  const std::string& path_;
  int fd_;
  int64_t size_ = 0;
};

}  // namespace

bool is_zip(const std::string& path) { return Archive(path).begins_as_zip(); }

Result<std::vector<ZipMember>> list_zip(const std::string& path) {
  Result<std::vector<ZipMember>> members = Archive(path).list();
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  if (members)
    for (const ZipMember& member : *members) all.members.insert_or_assign(path + "/" + member.name, member);
  return members;
}

std::optional<ZipMember> zip_member(const std::string& path) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  const auto at = all.members.find(path);
  return at == all.members.end() ? std::nullopt : std::optional(at->second);
}

std::string disk_path(const std::string& path) {
  const std::optional<ZipMember> member = zip_member(path);
  return member ? member->archive : path;
}

}  // namespace stageline
