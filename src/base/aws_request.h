// Requests to S3 and to what speaks as it does (MinIO, Ceph, R2 …): where a bucket answers, with whose credentials,
// and the signature (AWS Signature Version 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"

namespace stageline {

struct AwsCredentials {
  std::string key, secret, token;  // key is empty: nobody signs, as for a public bucket
  std::string origin;              // for messages: "the environment", "the profile \"default\""
  int64_t expires_s = 0;           // seconds since 1970; 0: never
};

// Looked for where the AWS CLI looks, in its order: AWS_ACCESS_KEY_ID …; AWS_WEB_IDENTITY_TOKEN_FILE; the profile
// (AWS_PROFILE) in ~/.aws/credentials and ~/.aws/config; the container's and the instance's own. Kept until they
// expire. Errors: kUnavailable for a profile whose credentials another program would have to make.
Result<AwsCredentials> aws_credentials();

using S3Query = std::vector<std::pair<std::string, std::string>>;

// "GET" of an object, or with an empty key of its bucket. The region is the bucket's where S3 has named one
// (note_bucket_region), else AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-east-1. AWS_ENDPOINT_URL_S3 and
// AWS_ENDPOINT_URL name another place than Amazon's.
HttpRequest s3_request(std::string_view bucket, std::string_view key, S3Query query, const AwsCredentials& credentials,
                       int64_t now_s);
void note_bucket_region(const std::string& bucket, const std::string& region);

// The text of the first <name>…</name>, entities replaced; "" when there is none.
std::string xml_text(std::string_view xml, std::string_view name);

// "2026-11-24T18:24:51.000Z" → seconds since 1970; 0 when it is none.
int64_t iso_seconds(std::string_view text);

}  // namespace stageline
