#include "base/aws.h"

#include <time.h>

#include <mutex>

#include "base/environment.h"
#include "base/hashes.h"
#include "base/input_files.h"
#include "base/json_tree.h"

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

constexpr size_t kMaxSettings = size_t{1} << 20;
constexpr int64_t kRenewBefore_s = 300;
constexpr int kOwnNetworkMs = 1000;  // the services of a container or an instance answer at once or do not exist

std::string settings_file(const char* named_by, const char* usual) {
  const std::string named = environment(named_by);
  return named.empty() ? environment("HOME") + "/.aws/" + usual : named;
}

// Returns nullopt when the file cannot be read or is too long.
std::optional<std::string> settings_text(const std::string& path) {
  note_input_file(path);  // no output replaces it
  return own_file(path, kMaxSettings);
}

// Reads one section of a file such as "[profile x]\nregion = eu-west-1". Empty when there is no such section.
using Section = std::map<std::string, std::string>;
Section section_of(const std::string& path, const std::string& title) {
  Section out;
  const std::optional<std::string> text = settings_text(path);
  if (!text) return out;
  bool inside = false;
  for (const std::string_view whole : split(*text, '\n')) {
    const std::string_view line = trim(whole);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      inside = line.ends_with(']') && trim(line.substr(1, line.size() - 2)) == title;
      continue;
    }
    const size_t equals = line.find('=');
    // Indented lines are settings inside another setting.
    if (!inside || equals == std::string_view::npos || whole[0] == ' ' || whole[0] == '\t') continue;
    out[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  return out;
}

std::string profile_name() {
  for (const char* name : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"})
    if (const std::string value = environment(name); !value.empty()) return value;
  return "default";
}

Section config_of_profile() {
  const std::string name = profile_name();
  return section_of(settings_file("AWS_CONFIG_FILE", "config"), name == "default" ? name : "profile " + name);
}

std::string value_of(const Section& section, const char* key) { return value_at(section, key); }

// Reads {"AccessKeyId": …, "SecretAccessKey": …, "Token": …, "Expiration": …}.
std::optional<AwsCredentials> of_json(const Result<HttpResponse>& answer, const char* origin) {
  if (!answer || answer->status != 200) return std::nullopt;
  const Result<JsonTree> json = parse_json_tree(answer->body, origin);
  if (!json) return std::nullopt;
  const Value root = json->tree.root();
  const auto text = [&](const char* name) { return std::string(root[name].text()); };
  AwsCredentials out{text("AccessKeyId"), text("SecretAccessKey"), text("Token"), origin,
                     iso_seconds(text("Expiration"))};
  if (out.key.empty() || out.secret.empty()) return std::nullopt;
  return out;
}

std::optional<AwsCredentials> of_web_identity() {
  const std::string file = environment("AWS_WEB_IDENTITY_TOKEN_FILE"), role = environment("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) return std::nullopt;
  const std::optional<std::string> token = settings_text(file);
  if (!token) return std::nullopt;
  const std::string session = environment("AWS_ROLE_SESSION_NAME", "stageline");
  HttpRequest request;
  request.url = environment("AWS_ENDPOINT_URL_STS");
  if (request.url.empty()) request.url = "https://sts." + aws_region() + ".amazonaws.com/";
  request.method = "POST";
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + percent_encoded(role, false) +
                 "&RoleSessionName=" + percent_encoded(session, false) +
                 "&WebIdentityToken=" + percent_encoded(trim(*token), false);
  const Result<HttpResponse> answer = http_request(request);
  if (!answer || answer->status != 200) return std::nullopt;
  AwsCredentials out{xml_text(answer->body, "AccessKeyId"), xml_text(answer->body, "SecretAccessKey"),
                     xml_text(answer->body, "SessionToken"), "the role of the web identity",
                     iso_seconds(xml_text(answer->body, "Expiration"))};
  if (out.key.empty() || out.secret.empty()) return std::nullopt;
  return out;
}

std::optional<AwsCredentials> of_container() {
  HttpRequest request;
  request.url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !relative.empty())
    request.url = "http://169.254.170.2" + relative;
  if (request.url.empty()) return std::nullopt;
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    if (const std::optional<std::string> text = settings_text(file)) token = trim(*text);
  if (!token.empty()) request.headers = {"Authorization: " + token};
  request.connect_ms = kOwnNetworkMs;
  request.tries = 2;
  return of_json(http_request(request), "the container");
}

std::optional<AwsCredentials> of_instance() {
  if (environment("AWS_EC2_METADATA_DISABLED") == "true") return std::nullopt;
  std::string place = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254");
  while (place.ends_with('/')) place.pop_back();
  HttpRequest request{.url = place + "/latest/api/token",
                      .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"},
                      .method = "PUT",
                      .connect_ms = kOwnNetworkMs,
                      .tries = 1};
  const Result<HttpResponse> token = http_request(request);
  if (!token || token->status != 200) return std::nullopt;
  request.method = "GET";
  request.headers = {"X-aws-ec2-metadata-token: " + token->body};
  request.url = place + "/latest/meta-data/iam/security-credentials/";
  const Result<HttpResponse> role = http_request(request);
  if (!role || role->status != 200) return std::nullopt;
  request.url += trim(split(role->body, '\n')[0]);
  return of_json(http_request(request), "the instance's role");
}

Result<AwsCredentials> find_credentials() {
  if (const std::string key = environment("AWS_ACCESS_KEY_ID"); !key.empty())
    return AwsCredentials{key, environment("AWS_SECRET_ACCESS_KEY"), environment("AWS_SESSION_TOKEN"),
                          "the environment", 0};
  if (std::optional<AwsCredentials> found = of_web_identity()) return *found;
  const std::string profile = profile_name();
  const Section config = config_of_profile();
  for (const Section& section :
       {section_of(settings_file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile), config}) {
    const std::string key = value_of(section, "aws_access_key_id");
    if (!key.empty())
      return AwsCredentials{key, value_of(section, "aws_secret_access_key"), value_of(section, "aws_session_token"),
                            "the profile \"" + profile + "\"", 0};
  }
  for (const char* by : {"credential_process", "sso_session", "sso_start_url", "role_arn"})
    if (config.contains(by))
      return make_error(ErrorCode::kUnavailable,
                        "the credentials of the profile \"" + profile + "\" are made by another program (" + by + ")",
                        "eval \"$(aws configure export-credentials --format env)\" puts them where they are found",
                        {settings_file("AWS_CONFIG_FILE", "config")});
  if (std::optional<AwsCredentials> found = of_container()) return *found;
  if (std::optional<AwsCredentials> found = of_instance()) return *found;
  return AwsCredentials{};
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
    if (const auto at = bucket_regions().find(std::string(bucket)); at != bucket_regions().end()) region = at->second;
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

std::string aws_region() {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const std::string value = environment(name); !value.empty()) return value;
  static const std::string of_profile = value_of(config_of_profile(), "region");
  return of_profile.empty() ? "us-east-1" : of_profile;
}

Result<AwsCredentials> aws_credentials() {
  static std::mutex mutex;
  static std::optional<AwsCredentials> kept;
  const std::lock_guard lock(mutex);
  if (kept && (kept->expires_s == 0 || kept->expires_s > time(nullptr) + kRenewBefore_s)) return *kept;
  Result<AwsCredentials> found = find_credentials();
  if (found) kept = *found;
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const size_t begin = xml.find(open);
  const size_t end = begin == std::string_view::npos ? begin : xml.find(close, begin);
  if (end == std::string_view::npos) return {};
  std::string_view text = xml.substr(begin + open.size(), end - begin - open.size());
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}};
  std::string out;
  while (!text.empty()) {
    const auto* const entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                            [&](const auto& one) { return text.starts_with(one.first); });
    const bool found = entity != std::end(kEntities);
    out += found ? entity->second : text[0];
    text.remove_prefix(found ? entity->first.size() : 1);
  }
  return out;
}

int64_t iso_seconds(std::string_view text) {
  struct tm utc{};
  return strptime(std::string(text).c_str(), "%Y-%m-%dT%H:%M:%S", &utc) ? timegm(&utc) : 0;
}

}  // namespace stageline
