#include "base/aws_credentials.h"

#include <time.h>

#include <map>
#include <mutex>
#include <optional>

#include "base/aws_answer.h"
#include "base/environment.h"
#include "base/http_client.h"
#include "base/input_files.h"
#include "base/json_tree.h"
#include "base/text.h"

namespace stageline {
namespace {

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

std::string value_of(const Section& section, const char* key) {
  const auto at = section.find(key);
  return at == section.end() ? std::string() : at->second;
}

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
  HttpRequest request;
  request.connect_ms = kOwnNetworkMs;
  request.tries = 1;
  request.method = "PUT";
  request.url = place + "/latest/api/token";
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 300"};
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

}  // namespace stageline
