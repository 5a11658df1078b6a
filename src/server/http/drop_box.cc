#include <sys/stat.h>

#include <filesystem>

#include "server/http/http_site.h"

namespace stageline {
namespace {

constexpr size_t kMaxDropNameBytes = 1024, kMaxPartBytes = 255, kMaxParts = 16;

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('/')); }

// Returns true if a name consists of parts between slashes, none of which is empty, "." or "..", too long, or has
// control characters.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxDropNameBytes) return false;
  const auto parts = split(name, '/');
  return parts.size() <= kMaxParts && std::ranges::all_of(parts, [](std::string_view part) {
           return !part.empty() && part != "." && part != ".." && part.size() <= kMaxPartBytes &&
                  std::ranges::none_of(part, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
         });
}

}  // namespace

Result<DropBox::Place> DropBox::place(int64_t drop, std::string_view name) {
  if (!takes()) return make_error(ErrorCode::kUnavailable, "no files are taken here");
  if (!is_name(name)) return make_error(ErrorCode::kUsage, "name is that of a file, with folders before it");
  const std::lock_guard lock(mutex_);
  if (drop == 0) {
    if (drops_.size() >= kMaxDrops) return make_error(ErrorCode::kLimit, "too many drops", "start the program anew");
    drop = std::ssize(drops_) + 1;
    drops_[drop].first_name = name;
  }
  const auto known = drops_.find(drop);
  if (known == drops_.end()) return make_error(ErrorCode::kNotFound, "there is no such drop");
  Drop& to = known->second;
  if (++to.files > kMaxFiles)
    return make_error(ErrorCode::kLimit, "a drop has too many files", "stageline view PATH reads them where they lie");
  to.several = to.several || first_part(name) != first_part(to.first_name);
  Place place{drop, folder_of(drop) + "/" + std::string(name)};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(place.path).parent_path(), error);
  if (error) return make_error(ErrorCode::kIo, "no folder can be made: " + error.message());
  return place;
}

bool DropBox::take_bytes(uint64_t bytes) {
  if (bytes_.fetch_add(bytes) + bytes <= kMaxBytes) return true;
  bytes_ -= bytes;
  return false;
}

Result<std::string> DropBox::path_of(int64_t drop) const {
  const std::lock_guard lock(mutex_);
  const auto known = drops_.find(drop);
  if (known == drops_.end()) return make_error(ErrorCode::kNotFound, "there is no such drop");
  const std::string folder = folder_of(drop);
  return known->second.several ? folder : folder + "/" + std::string(first_part(known->second.first_name));
}

std::string DropBox::name_of(int64_t drop) const {
  const std::lock_guard lock(mutex_);
  const auto known = drops_.find(drop);
  return known == drops_.end() ? "" : std::string(first_part(known->second.first_name));
}

}  // namespace stageline
