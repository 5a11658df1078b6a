#include "base/aws_request.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/environment.h"
#include "base/sha256.h"
#include "base/text.h"

namespace stageline {
namespace {

std::mutex regions_mutex;
std::map<std::string, std::string>& bucket_regions() {
  static auto* const all = new std::map<std::string, std::string>();
  return *all;
}

std::string time_text(int64_t now_s) {  // "20261124T182451Z"
  const time_t now = now_s;
  struct tm utc;
  gmtime_r(&now, &utc);
  char text[32];
  strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

// Adds the signature to the request (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
void sign(HttpRequest& request, const std::string& host, const std::string& path, const std::string& query,
          const std::string& region, const AwsCredentials& by, int64_t now_s) {
  const std::string time = time_text(now_s), day = time.substr(0, 8);
  const std::string body = hex_of(sha256(request.body));
  std::vector<std::pair<std::string, std::string>> headers = {
      {"host", host}, {"x-amz-content-sha256", body}, {"x-amz-date", time}};
  if (!by.token.empty()) headers.emplace_back("x-amz-security-token", by.token);
  std::string canonical = request.method + "\n" + path + "\n" + query + "\n", names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    append_item(names, name, ";");
    if (name != "host") request.headers.push_back(name + ": " + value);
  }
  canonical += "\n" + names + "\n" + body;
  const std::string scope = day + "/" + region + "/s3/aws4_request";
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + hex_of(sha256(canonical));
  Sha256 key = hmac_sha256("AWS4" + by.secret, day);
  for (const std::string_view part :
       {std::string_view(region), std::string_view("s3"), std::string_view("aws4_request")})
    key = hmac_sha256(bytes_of(key), part);
  request.headers.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + by.key + "/" + scope +
                            ", SignedHeaders=" + names + ", Signature=" + hex_of(hmac_sha256(bytes_of(key), text)));
}

}  // namespace

void note_bucket_region(const std::string& bucket, const std::string& region) {
  const std::lock_guard lock(regions_mutex);
  bucket_regions()[bucket] = region;
}

HttpRequest s3_request(std::string_view bucket, std::string_view key, S3Query query, const AwsCredentials& credentials,
                       int64_t now_s) {
  std::string region;
  {
    const std::lock_guard lock(regions_mutex);
    const auto at = bucket_regions().find(std::string(bucket));
    if (at != bucket_regions().end()) region = at->second;
  }
  if (region.empty()) region = aws_region();
  std::string place = environment("AWS_ENDPOINT_URL_S3");
  if (place.empty()) place = environment("AWS_ENDPOINT_URL");
  std::string path = "/" + percent_encoded(key, true);
  if (place.empty()) {
    // Amazon's certificate does not cover host names made from buckets with dots in their names.
    const bool own_host = bucket.find('.') == std::string_view::npos;
    place = "https://" + (own_host ? std::string(bucket) + "." : "") + "s3." + region + ".amazonaws.com";
    if (!own_host) path = "/" + std::string(bucket) + path;
  } else {
    while (place.ends_with('/')) place.pop_back();
    path = "/" + percent_encoded(bucket, false) + (key.empty() ? "" : path);
  }
  const size_t host_at = place.find("://") == std::string::npos ? 0 : place.find("://") + 3;
  if (host_at == 0) place = "https://" + place;
  const std::string whole_host = place.substr(place.find("://") + 3);
  const std::string host = whole_host.substr(0, whole_host.find('/')), before = whole_host.substr(host.size());
  path = before + path;
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query)
    append_item(text, percent_encoded(name, false) + "=" + percent_encoded(value, false), "&");
  HttpRequest request;
  request.url = place.substr(0, place.size() - before.size()) + path + (text.empty() ? "" : "?" + text);
  if (!credentials.key.empty()) sign(request, host, path, text, region, credentials, now_s);
  return request;
}

}  // namespace stageline
