#include "base/remote_file.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/aws.h"

namespace stageline {
namespace {

constexpr size_t kFirstPart = size_t{1} << 16, kLargestPart = size_t{8} << 20;
constexpr const char* kS3 = "s3://";
constexpr const char* kSchemeLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";  // of a scheme
std::atomic<bool> remote_allowed{false};

std::mutex known_mutex;
std::map<std::string, RemoteFile>& known_files() {
  static auto* const all = new std::map<std::string, RemoteFile>();
  return *all;
}

// Whole addresses by the names that shown_address() gave them.
std::map<std::string, std::string>& whole_addresses() {
  static auto* const all = new std::map<std::string, std::string>();
  return *all;
}
std::string whole_address(const std::string& shown) {
  const std::lock_guard lock(known_mutex);
  const auto at = whole_addresses().find(shown);
  return at == whole_addresses().end() ? shown : at->second;
}

void remember(const RemoteFile& file) {
  const std::lock_guard lock(known_mutex);
  known_files()[file.path] = file;
}

struct S3Name {
  std::string bucket, key;
};
S3Name s3_name(std::string_view path) {
  path.remove_prefix(std::string_view(kS3).size());
  const size_t slash = path.find('/');
  return {std::string(path.substr(0, slash)),
          slash == std::string_view::npos ? std::string() : std::string(path.substr(slash + 1))};
}

// Returns an error such as "403 AccessDenied: Access Denied", from S3's answer or any other.
Error refusal(const std::string& path, const HttpResponse& answer, const AwsCredentials* by) {
  const std::string code = xml_text(answer.body, "Code"), message = xml_text(answer.body, "Message");
  std::string what = "the server answers " + std::to_string(answer.status);
  if (!code.empty()) what += " " + code;
  if (!message.empty()) what += ": " + message;
  if (answer.status == 404) return make_error(ErrorCode::kNotFound, "no such file or folder: " + what, "", {path});
  std::string hint;
  if (by && (answer.status == 401 || answer.status == 403))
    hint = by->key.empty() ? "no credentials were found where the AWS CLI looks for them; AWS_ACCESS_KEY_ID and "
                             "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, name some"
                           : "asked with the credentials of " + by->origin;
  return make_error(ErrorCode::kIo, what, hint, {path});
}

// Sends a GET for an S3 object or bucket, or for another address. It is repeated once when the bucket turns out to be
// in another region.
Result<HttpResponse> ask(const std::string& path, const S3Query& query, const std::vector<std::string>& headers,
                         size_t max_bytes) {
  if (!path.starts_with(kS3)) {
    HttpRequest request{.url = whole_address(path), .headers = headers, .follow = true, .max_bytes = max_bytes};
    Result<HttpResponse> answer = http_request(request);
    if (!answer) {
      Error error = std::move(answer).error();
      error.where = {path};
      return error;
    }
    if (answer->status != 200 && answer->status != 206 && answer->status != 416) return refusal(path, *answer, nullptr);
    return answer;
  }
  TRY(by, aws_credentials());
  const S3Name name = s3_name(path);
  for (bool moved = false;;) {
    HttpRequest request = s3_request(name.bucket, query.empty() ? name.key : "", query, *by, time(nullptr));
    request.headers.insert(request.headers.end(), headers.begin(), headers.end());
    request.max_bytes = std::max(max_bytes, size_t{1} << 16);  // leaves room for the text of an error
    Result<HttpResponse> answer = http_request(request);
    if (!answer) return answer;
    const auto region = answer->headers.find("x-amz-bucket-region");
    if (answer->status >= 300 && answer->status <= 400 && region != answer->headers.end() && !moved) {
      note_bucket_region(name.bucket, region->second);
      moved = true;
      continue;
    }
    if (answer->status != 200 && answer->status != 206 && answer->status != 416) return refusal(path, *answer, &*by);
    return answer;
  }
}

std::string header_of(const HttpResponse& answer, const char* name) { return value_at(answer.headers, name); }

// Parses "Tue, 24 Nov 2026 18:24:51 GMT".
int64_t http_date_ns(const std::string& text) {
  struct tm utc{};
  return strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S", &utc) ? timegm(&utc) * 1'000'000'000 : 0;
}

// Finds size and version by requesting the first byte, because an address that is signed for reading refuses any other
// kind of request.
Result<RemoteFile> look(const std::string& path) {
  Result<HttpResponse> answer = ask(path, {}, {"Range: bytes=0-0"}, size_t{1} << 12);
  if (!answer && answer.error().code == ErrorCode::kLimit)
    return make_error(ErrorCode::kIo, "this server gives files as a whole only, not in parts", "copy the file first",
                      {path});
  if (!answer) return std::move(answer).error();
  RemoteFile file{path, 0, http_date_ns(header_of(*answer, "last-modified")), header_of(*answer, "etag")};
  const std::string range = header_of(*answer, "content-range");  // "bytes 0-0/4711"; "bytes */0" for an empty file
  const std::optional<int64_t> size =
      answer->status == 200 ? static_cast<int64_t>(answer->body.size())  // a small file may be returned whole
                            : parse_int(std::string_view(range).substr(std::min(range.size(), range.rfind('/') + 1)));
  if (!size || *size < 0)
    return make_error(ErrorCode::kIo, "this server does not say how long the file is", "copy the file first", {path});
  file.size_bytes = *size;
  return file;
}

Result<std::vector<RemoteFile>> list(const std::string& folder, size_t at_most) {
  const S3Name name = s3_name(folder);
  std::vector<RemoteFile> files;
  std::string next;
  std::set<std::string> asked;
  do {
    // Pages have a thousand entries, as a rule.
    if (!asked.insert(next).second || asked.size() > 100 + files.size() / 100)
      return make_error(ErrorCode::kIo, "the server's listing never ends", "", {folder});
    S3Query query = {{"list-type", "2"}, {"prefix", name.key}, {"encoding-type", "url"}};
    if (!next.empty()) query.emplace_back("continuation-token", next);
    TRY(page, ask(folder, query, {}, size_t{16} << 20));
    next = xml_text(page->body, "NextContinuationToken");
    for (size_t at = 0;;) {
      const size_t begin = page->body.find("<Contents>", at);
      if (begin == std::string::npos) break;
      const size_t end = std::min(page->body.find("</Contents>", begin), page->body.size());
      const std::string_view object = std::string_view(page->body).substr(begin, end - begin);
      at = end;
      const std::string key = percent_decoded(xml_text(object, "Key"));
      if (key.ends_with('/')) continue;  // an entry that some tools create for a folder
      if (!key.starts_with(name.key) || parse_int(xml_text(object, "Size")).value_or(0) < 0)
        return make_error(ErrorCode::kIo, "the server's listing has an entry that does not belong to it: " + key, "",
                          {folder});
      files.push_back({kS3 + name.bucket + "/" + key, parse_int(xml_text(object, "Size")).value_or(0),
                       iso_seconds(xml_text(object, "LastModified")) * 1'000'000'000, xml_text(object, "ETag")});
    }
  } while (!next.empty() && files.size() <= at_most);
  return files;
}

Result<std::string> fetch(const RemoteFile& file, int64_t from, size_t size) {
  const int64_t to = std::min(file.size_bytes, from + static_cast<int64_t>(size));
  std::vector<std::string> headers = {"Range: bytes=" + std::to_string(from) + "-" + std::to_string(to - 1)};
  if (!file.version.empty() && !file.version.starts_with("W/")) headers.push_back("If-Match: " + file.version);
  Result<HttpResponse> answer = ask(file.path, {}, headers, to - from);
  const Error changed{ErrorCode::kIo, "the file changed while it was read", {file.path, 0, from}, "open the run again"};
  if (!answer) {
    Error error = std::move(answer).error();
    if (error.code == ErrorCode::kLimit || error.what.starts_with("the server answers 412")) return changed;
    error.where.byte = from;
    return error;
  }
  if (static_cast<int64_t>(answer->body.size()) != to - from) return changed;
  return std::move(answer->body);
}

}  // namespace

bool is_remote(std::string_view path) {
  return path.starts_with(kS3) || path.starts_with("https://") || path.starts_with("http://");
}

std::string shown_address(const std::string& path) {
  const size_t scheme = path.find("://");
  if (scheme == std::string::npos || path.find_first_not_of(kSchemeLetters) != scheme) return path;
  const std::string address = to_lower(path.substr(0, scheme)) + path.substr(scheme);
  const size_t host = scheme + 3, end = std::min(address.find_first_of("/?#", host), address.size());
  size_t at = address.rfind('@', end), port = address.rfind(':', end);
  // A password with a slash seems to end the host's name; the text after the colon is not a port then.
  if ((at == std::string::npos || at < host) && port != std::string::npos && port >= host && address[end - 1] != ']' &&
      address.find_first_not_of("0123456789", port + 1) < end)
    at = address.rfind('@');
  const bool has_user = at != std::string::npos && at >= host;
  // Only addresses of other machines are known to have queries; "run:" may be a folder.
  if (!is_remote(address) && (!has_user || access(path.c_str(), F_OK) == 0)) return path;
  const size_t query = address.starts_with(kS3)
                           ? address.size()
                           : std::min(address.find_first_of("?#", has_user ? at : host), address.size());
  if (!has_user && query == address.size()) return address;
  const std::string shown =
      address.substr(0, host) + address.substr(has_user ? at + 1 : host, query - (has_user ? at + 1 : host));
  const std::lock_guard lock(known_mutex);
  if (whole_addresses().contains(address)) return address;
  for (int number = 1;; ++number) {
    const std::string name = number == 1 ? shown : shown + "#" + std::to_string(number);
    if (whole_addresses().try_emplace(name, address).first->second == address) return name;
  }
}

void allow_remote_files(bool allowed) { remote_allowed = allowed; }

Result<RemoteFile> remote_file(const std::string& path) {
  if (!remote_allowed)
    return make_error(ErrorCode::kUnavailable, "files behind a network address are not opened here",
                      "copy them, or read them with stageline explain, report, analyze, export or digest", {path});
  {
    const std::lock_guard lock(known_mutex);
    if (const auto at = known_files().find(path); at != known_files().end()) return at->second;
  }
  Result<RemoteFile> file = look(path);
  if (file) remember(*file);
  return file;
}

Result<std::vector<RemoteFile>> find_remote(const std::string& path, size_t at_most) {
  const bool of_s3 = path.starts_with(kS3);
  if (!of_s3 || (!path.ends_with('/') && !s3_name(path).key.empty())) {
    Result<RemoteFile> one = remote_file(path);
    if (one) return std::vector<RemoteFile>{*one};
    if (!of_s3 || one.error().code != ErrorCode::kNotFound) return std::move(one).error();
  } else if (!remote_allowed) {
    return remote_file(path).error();
  }
  Result<std::vector<RemoteFile>> files = list(path.ends_with('/') ? path : path + "/", at_most);
  if (!files) return files;
  if (files->empty()) return make_error(ErrorCode::kNotFound, "no such file or folder", "", {path});
  for (const RemoteFile& file : *files) remember(file);
  return files;
}

Result<std::unique_ptr<RemoteStream>> RemoteStream::open(const std::string& path) {
  TRY(file, remote_file(path));
  return std::unique_ptr<RemoteStream>(new RemoteStream(std::move(*file)));
}

RemoteStream::~RemoteStream() {
  if (ahead_.valid()) ahead_.wait();
}

Result<std::string> RemoteStream::next_part() {
  const auto ask_next = [this] {
    part_bytes_ = part_bytes_ == 0 ? kFirstPart : std::min(kLargestPart, part_bytes_ * 4);
    const int64_t from = asked_to_;
    asked_to_ = std::min(file_.size_bytes, from + static_cast<int64_t>(part_bytes_));
    return std::pair(from, part_bytes_);
  };
  Result<std::string> part = std::string();
  if (ahead_.valid()) {
    part = ahead_.get();
  } else if (asked_to_ < file_.size_bytes) {
    const auto [from, size] = ask_next();
    part = fetch(file_, from, size);
    if (from == 0) return part;  // often only the head of the file is wanted
  }
  if (part && asked_to_ < file_.size_bytes)
    ahead_ = std::async(std::launch::async,
                        [file = file_, next = ask_next()] { return fetch(file, next.first, next.second); });
  return part;
}

Result<size_t> RemoteStream::read(char* out, size_t capacity) {
  if (used_ == part_.size()) {
    TRY_OK(take(next_part(), part_));
    used_ = 0;
  }
  const size_t n = std::min(capacity, part_.size() - used_);
  std::copy_n(part_.data() + used_, n, out);
  used_ += n;
  return n;
}

}  // namespace stageline
