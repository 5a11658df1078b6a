// Requests to S3 and to services with the same interface (MinIO, Ceph, R2 …): the address of a bucket, and the
// signature (AWS Signature Version 4).
#pragma once

#include "base/http_client.h"

namespace stageline {

// Credentials and settings of S3, found where the AWS CLI finds them.
struct AwsCredentials {
  std::string key, secret, token;  // `key` is empty when requests are not signed, as for a public bucket
  std::string origin;              // for messages: "the environment", "the profile \"default\""
  int64_t expires_s = 0;           // seconds since 1970; 0: never
};

// Looks for credentials where the AWS CLI looks, in the same order: AWS_ACCESS_KEY_ID and the other variables,
// AWS_WEB_IDENTITY_TOKEN_FILE, the profile (AWS_PROFILE) in ~/.aws/credentials and ~/.aws/config, the container, the
// instance. The credentials are kept until they expire. Errors: kUnavailable for a profile whose credentials another
// program would have to make.
Result<AwsCredentials> aws_credentials();

// Returns AWS_REGION, AWS_DEFAULT_REGION, the profile's region, or us-east-1.
std::string aws_region();

using S3Query = std::vector<std::pair<std::string, std::string>>;

// Returns a "GET" request for an object, or for its bucket when `key` is empty. The region is the bucket's own when S3
// has named it (note_bucket_region), else aws_region(). AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL name another server
// than Amazon's.
HttpRequest s3_request(std::string_view bucket, std::string_view key, S3Query query, const AwsCredentials& credentials,
                       int64_t now_s);
void note_bucket_region(const std::string& bucket, const std::string& region);

// Returns the text of the first <name>…</name> with entities replaced, or "" when there is none.
std::string xml_text(std::string_view xml, std::string_view name);

// Converts "2026-11-24T18:24:51.000Z" to seconds since 1970. Returns 0 for a text that is not such a time.
int64_t iso_seconds(std::string_view text);

}  // namespace stageline
