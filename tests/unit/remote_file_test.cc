#include "base/remote_file.h"

#include <doctest/doctest.h>

#include <string>

#include "base/aws.h"
#include "base/hashes.h"
#include "base/http_client.h"

using namespace stageline;

TEST_CASE("SHA-256 and its HMAC give the published digests") {
  CHECK(hex_of(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex_of(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex_of(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (size_t size = 54; size < 66; ++size)  // the end takes one block or two
    CHECK(sha256(std::string(size, 'x')) != sha256(std::string(size + 1, 'x')));
  // RFC 4231, cases 2 and 6 (a key longer than a block).
  CHECK(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex_of(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("addresses are told from paths") {
  for (const char* path : {"s3://bucket/run", "https://host/a.json", "http://host/a.json"}) CHECK(is_remote(path));
  for (const char* path : {"s3:/bucket", "logs/https:", "/s3://x", "-", ""}) CHECK_FALSE(is_remote(path));
}

TEST_CASE("no request goes to other machines unless a command allows it") {
  allow_remote_files(false);
  const Result<RemoteFile> file = remote_file("http://127.0.0.1:1/x");
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ErrorCode::kUnavailable);
  CHECK_FALSE(find_remote("s3://bucket/", 10));
}

TEST_CASE("names are encoded for an address and back") {
  CHECK(percent_encoded("läufe 4/2+1", true) == "l%C3%A4ufe%204/2%2B1");
  CHECK(percent_encoded("a/b~", false) == "a%2Fb~");
  CHECK(percent_decoded("l%C3%A4ufe%204%2F2%2b1") == "läufe 4/2+1");
  CHECK(percent_decoded("100%") == "100%");
  CHECK(percent_decoded("%zz%4") == "%zz%4");
}

TEST_CASE("texts are found in XML, with their entities") {
  CHECK(xml_text("<a><Key>x&amp;y &lt;1&gt;</Key><Key>2</Key></a>", "Key") == "x&y <1>");
  CHECK(xml_text("<Key>open", "Key").empty());
  CHECK(xml_text("", "Key").empty());
}

TEST_CASE("times of S3 are seconds") {
  CHECK(iso_seconds("2023-11-14T22:13:20.000Z") == 1'700'000'000);
  CHECK(iso_seconds("yesterday") == 0);
}
