// Credentials and settings of S3, found where the AWS CLI finds them.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stageline {

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

}  // namespace stageline
