#include "base/http_client.h"

#include <dlfcn.h>
#include <strings.h>
#include <unistd.h>

#include <mutex>

#include "base/environment.h"

namespace stageline {
namespace {

#define OPTION(name, number) name = number,
enum Option : int {
#include "base/curl_options.def"
};
constexpr int kResponseCode = 0x200000 + 2;
constexpr long kGlobalDefault = 3, kHttp = 1, kHttps = 2;

struct Curl {
  int (*global_init)(long) = nullptr;
  void* (*init)() = nullptr;
  void (*reset)(void*) = nullptr;
  int (*set)(void*, int, ...) = nullptr;
  int (*perform)(void*) = nullptr;
  int (*info)(void*, int, ...) = nullptr;
  const char* (*text)(int) = nullptr;
  void* (*append)(void*, const char*) = nullptr;
  void (*free_list)(void*) = nullptr;
  void (*cleanup)(void*) = nullptr;
  bool here = false;
};

const Curl& curl() {
  static const Curl only = [] {
    Curl c;
    void* library = nullptr;
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return c;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    c.here = find(c.global_init, "curl_global_init") && find(c.init, "curl_easy_init") &&
             find(c.reset, "curl_easy_reset") && find(c.set, "curl_easy_setopt") &&
             find(c.perform, "curl_easy_perform") && find(c.info, "curl_easy_getinfo") &&
             find(c.text, "curl_easy_strerror") && find(c.append, "curl_slist_append") &&
             find(c.free_list, "curl_slist_free_all") && find(c.cleanup, "curl_easy_cleanup") &&
             c.global_init(kGlobalDefault) == 0;
    return c;
  }();
  return only;
}

// Handles that are not in use, with their open connections. The next request, in whatever thread, can use such a
// connection without a new handshake.
class Connections {
 public:
  void* take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return curl().init();
    void* const handle = idle_.back();
    idle_.pop_back();
    return handle;
  }
  void give_back(void* handle) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> idle_;
};
Connections& connections() {
  static Connections* const all = new Connections();  // it must outlive every thread that may still read
  return *all;
}

struct Taken {
  HttpResponse response;
  size_t max = 0;
  bool too_long = false;
};

size_t take_body(char* bytes, size_t size, size_t count, void* to) {
  Taken& taken = *static_cast<Taken*>(to);
  if (taken.response.body.size() + size * count > taken.max) {
    taken.too_long = true;
    return 0;
  }
  taken.response.body.append(bytes, size * count);
  return size * count;
}

size_t take_header(char* bytes, size_t size, size_t count, void* to) {
  Taken& taken = *static_cast<Taken*>(to);
  const std::string_view line = trim({bytes, size * count});
  // Drops the headers of a redirection, which came before.
  if (line.starts_with("HTTP/")) taken.response.headers.clear();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || taken.response.headers.size() > 200) return size * count;
  taken.response.headers[to_lower(line.substr(0, colon))] = trim(line.substr(colon + 1));
  return size * count;
}

Result<HttpResponse> try_once(const HttpRequest& request, void* handle) {
  const Curl& c = curl();
  Taken taken;
  taken.max = request.max_bytes;
  char reason[512] = "";
  void* list = nullptr;
  for (const std::string& header : request.headers) list = c.append(list, header.c_str());
  c.reset(handle);
  c.set(handle, kUrl, request.url.c_str());
  c.set(handle, kUserAgent, "stageline/" STAGELINE_VERSION);
  c.set(handle, kHttpHeader, list);
  c.set(handle, kWriteFunction, take_body);
  c.set(handle, kWriteData, &taken);
  c.set(handle, kHeaderFunction, take_header);
  c.set(handle, kHeaderData, &taken);
  c.set(handle, kErrorBuffer, reason);
  c.set(handle, kNoSignal, 1L);
  c.set(handle, kPathAsIs, 1L);
  c.set(handle, kConnectMs, static_cast<long>(request.connect_ms));
  for (const char* name :
       {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})  // which the curl program reads, and the library does not
    if (const std::string path = environment(name); !path.empty()) c.set(handle, kCaFile, path.c_str());
  c.set(handle, kWholeMs, static_cast<long>(request.whole_ms));
  for (const char* own : {"://127.0.0.1", "://localhost", "://[::1]"})
    if (request.url.find(own) != std::string::npos) c.set(handle, kProxy, "");
  c.set(handle, kTimeLimitBytes, 1L);
  c.set(handle, kTimeLimitSeconds, std::max(1L, std::min(60L, static_cast<long>(request.connect_ms) * 6 / 1000)));
  c.set(handle, kProtocols, kHttp | kHttps);
  c.set(handle, kRedirectProtocols, request.url.starts_with("https:") ? kHttps : kHttp | kHttps);
  c.set(handle, kFollow, request.follow ? 1L : 0L);
  c.set(handle, kMaxRedirects, 5L);
  if (request.method == "POST") {
    c.set(handle, kPostSize, static_cast<int64_t>(request.body.size()));
    c.set(handle, kPostFields, request.body.c_str());
  } else if (request.method == "HEAD") {
    c.set(handle, kNoBody, 1L);
  } else if (request.method != "GET") {
    c.set(handle, kCustomRequest, request.method.c_str());
  }
  const int code = c.perform(handle);
  c.free_list(list);
  if (taken.too_long)
    return make_error(ErrorCode::kLimit, "the answer is longer than it was asked to be", "", {request.url});
  if (code != 0)
    return make_error(ErrorCode::kIo, std::string("cannot be reached: ") + (*reason ? reason : c.text(code)), "",
                      {request.url});
  long status = 0;
  c.info(handle, kResponseCode, &status);
  taken.response.status = static_cast<int>(status);
  return std::move(taken.response);
}

}  // namespace

Status http_available(const std::string& url) {
  if (curl().here) return {};
  return make_error(
      ErrorCode::kUnavailable, "network addresses need libcurl, which is not on this machine",
      "Debian and Ubuntu: apt install libcurl4 (newer ones libcurl4t64); Fedora and RHEL: dnf install libcurl", {url});
}

Result<HttpResponse> http_request(const HttpRequest& request) {
  TRY_OK(http_available(request.url));
  void* const handle = connections().take();
  if (!handle) return make_error(ErrorCode::kIo, "libcurl cannot start", "", {request.url});
  for (int tried = 1;; ++tried) {
    Result<HttpResponse> response = try_once(request, handle);
    const bool passing =
        response ? response->status == 429 || response->status >= 500 : response.error().code == ErrorCode::kIo;
    if (!passing || tried >= request.tries) {
      connections().give_back(handle);
      return response;
    }
    usleep(static_cast<useconds_t>(100'000) << tried);  // pauses of 0.2, 0.4, 0.8 and 1.6 s
  }
}

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes);
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += "0123456789ABCDEF"[static_cast<uint8_t>(c) >> 4];
      out += "0123456789ABCDEF"[static_cast<uint8_t>(c) & 15];
    }
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace stageline
