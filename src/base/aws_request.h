// Requests to S3 and to services with the same interface (MinIO, Ceph, R2 …): the address of a bucket, and the
// signature (AWS Signature Version 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aws_credentials.h"
#include "base/http_client.h"

namespace stageline {

using S3Query = std::vector<std::pair<std::string, std::string>>;

// Returns a "GET" request for an object, or for its bucket when `key` is empty. The region is the bucket's own when S3
// has named it (note_bucket_region), else aws_region(). AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL name another server
// than Amazon's.
HttpRequest s3_request(std::string_view bucket, std::string_view key, S3Query query, const AwsCredentials& credentials,
                       int64_t now_s);
void note_bucket_region(const std::string& bucket, const std::string& region);

}  // namespace stageline
