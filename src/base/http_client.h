// Sends one HTTP request by libcurl. The library is opened when it is first needed, so reading local files does not
// require it.
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct HttpRequest {
  std::string url;                   // "http://…" or "https://…"
  std::vector<std::string> headers;  // "Range: bytes=0-65535"
  std::string method = "GET";
  std::string body;
  bool follow = false;         // follows redirections, but never from https to http
  int connect_ms = 10'000;     // longest wait until the server answers
  int whole_ms = 0;            // longest time of an attempt; 0: as long as bytes come
  int tries = 5;               // attempts after a broken connection or a status of 429 or 5xx, with growing pauses
  size_t max_bytes = 1 << 24;  // limit of the answer's body
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Errors: kUnavailable, with the address that is asked for, when there is no libcurl.
Status http_available(const std::string& url);

// Sends the request. Any answer is a result, whatever its status. Proxies and certificates are found as the curl
// program finds them; addresses of this machine need no proxy. May be called from any thread; each thread keeps its
// connections. Errors: as http_available(); kIo with curl's reason when there is no answer or no byte comes for a
// minute; kLimit.
Result<HttpResponse> http_request(const HttpRequest& request);

// Converts "a b/ü" to "a%20b/%C3%BC" (RFC 3986). A '/' is kept only with `keep_slashes`.
std::string percent_encoded(std::string_view text, bool keep_slashes);
std::string percent_decoded(std::string_view text);

}  // namespace stageline
