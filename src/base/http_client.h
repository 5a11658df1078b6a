// One request over HTTP by libcurl, which is opened when it is first needed: who reads files alone needs none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace stageline {

struct HttpRequest {
  std::string url;                   // "http://…" or "https://…"
  std::vector<std::string> headers;  // "Range: bytes=0-65535"
  std::string method = "GET";
  std::string body;
  bool follow = false;          // redirections, never from https to http
  int connect_ms = 10'000;      // at most, until somebody answers
  int tries = 5;                // after a broken connection, 429 or 5xx, with growing pauses
  size_t most_bytes = 1 << 24;  // of the answer's body
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Any answer is a result, whatever its status. Proxies and certificates are found as the curl program finds them. From
// any thread; each keeps its connections. Errors: kUnavailable where there is no libcurl, kIo with curl's reason where
// nobody answers, or after a minute without a byte, kLimit.
Result<HttpResponse> http_request(const HttpRequest& request);

// "a b/ü" → "a%20b/%C3%BC" (RFC 3986; '/' stays unless it is said to be a character like others).
std::string percent_encoded(std::string_view text, bool keep_slashes);
std::string percent_decoded(std::string_view text);

}  // namespace stageline
