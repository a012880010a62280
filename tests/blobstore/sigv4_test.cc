#include "blobstore/sigv4.h"

#include <gtest/gtest.h>

#include <string>

#include "blobstore/sha256.h"

/// Vectors that AWS has published:
/// - the examples of "Signature Calculations for the Authorization Header" of S3's API reference,
///   https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html;
/// - the "AWS Signature Version 4 test suite", as in github.com/awslabs/aws-c-auth,
/// tests/aws-signing-test-suite/v4.
namespace kvstore::s3 {
namespace {

constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct Vector {
  const char* name;
  const char* method;
  const char* path;
  Fields query;
  Fields headers;  // besides host and x-amz-date
  std::string body;
  const char* signed_headers;
  const char* signature;
};

void PrintTo(const Vector& vector, std::ostream* out) { *out << vector.name; }

/// Returns the signature's header, with the payload's hash signed as S3 demands it if `sign_hash`.
std::string Sign(const Vector& vector, const Credentials& credentials, const SigningScope& scope,
                 const std::string& host, const std::string& date, bool sign_hash) {
  const std::string hash = Hex(Sha256Of(vector.body));
  Fields headers = vector.headers;
  headers.emplace_back("Host", host);
  headers.emplace_back("X-Amz-Date", date);
  if (sign_hash) headers.emplace_back("x-amz-content-sha256", hash);
  if (!credentials.session_token.empty())
    headers.emplace_back("X-Amz-Security-Token", credentials.session_token);
  return Authorization({.method = vector.method,
                        .path = vector.path,
                        .query = vector.query,
                        .headers = headers,
                        .payload_sha256 = hash},
                       credentials, scope, date);
}

class S3Examples : public ::testing::TestWithParam<Vector> {};

TEST_P(S3Examples, AreSignedAsPublished) {
  const Vector& vector = GetParam();
  const Credentials credentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  EXPECT_EQ(
      Sign(vector, credentials, {"us-east-1", "s3"}, "examplebucket.s3.amazonaws.com", "20130524T000000Z",
           true),
      std::string("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                  "SignedHeaders=") +
          vector.signed_headers + ", Signature=" + vector.signature);
}

INSTANTIATE_TEST_SUITE_P(
    Published, S3Examples,
    ::testing::Values(Vector{"GetObject",
                             "GET",
                             "/test.txt",
                             {},
                             {{"Range", "bytes=0-9"}},
                             "",
                             "host;range;x-amz-content-sha256;x-amz-date",
                             "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
                      Vector{"PutObject",
                             "PUT",
                             "/test$file.text",
                             {},
                             {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                              {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                             "Welcome to Amazon S3.",
                             "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                             "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
                      Vector{"GetBucketLifecycle",
                             "GET",
                             "/",
                             {{"lifecycle", ""}},
                             {},
                             "",
                             "host;x-amz-content-sha256;x-amz-date",
                             "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
                      Vector{"ListObjects",
                             "GET",
                             "/",
                             {{"prefix", "J"}, {"max-keys", "2"}},
                             {},
                             "",
                             "host;x-amz-content-sha256;x-amz-date",
                             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"}),
    [](const auto& test) { return std::string(test.param.name); });

class TestSuite : public ::testing::TestWithParam<Vector> {};

TEST_P(TestSuite, IsSignedAsPublished) {
  const Vector& vector = GetParam();
  const Credentials credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  EXPECT_EQ(Sign(vector, credentials, {"us-east-1", "service"}, "example.amazonaws.com", "20150830T123600Z",
                 !vector.body.empty()),
            std::string("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                        "SignedHeaders=") +
                vector.signed_headers + ", Signature=" + vector.signature);
}

constexpr char kUnreserved[] = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

INSTANTIATE_TEST_SUITE_P(
    Published, TestSuite,
    ::testing::Values(Vector{"get_vanilla",
                             "GET",
                             "/",
                             {},
                             {},
                             "",
                             "host;x-amz-date",
                             "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
                      Vector{"get_vanilla_query_order_encoded",
                             "GET",
                             "/",
                             {{"Param-3", "Value3"}, {"Param", "Value2"}, {"\xE1\x88\xB4", "Value1"}},
                             {},
                             "",
                             "host;x-amz-date",
                             "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
                      Vector{"get_vanilla_query_order_key_case",
                             "GET",
                             "/",
                             {{"Param2", "value2"}, {"Param1", "value1"}},
                             {},
                             "",
                             "host;x-amz-date",
                             "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
                      Vector{"get_vanilla_query_unreserved",
                             "GET",
                             "/",
                             {{kUnreserved, kUnreserved}},
                             {},
                             "",
                             "host;x-amz-date",
                             "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
                      Vector{"get_vanilla_utf8_query",
                             "GET",
                             "/",
                             {{"\xE1\x88\xB4", "bar"}},
                             {},
                             "",
                             "host;x-amz-date",
                             "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
                      Vector{"get_utf8",
                             "GET",
                             "/\xE1\x88\xB4",
                             {},
                             {},
                             "",
                             "host;x-amz-date",
                             "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
                      Vector{"get_space",
                             "GET",
                             "/example space/",
                             {},
                             {},
                             "",
                             "host;x-amz-date",
                             "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
                      // S3 does not normalise paths: two slashes are a name with an empty part.
                      Vector{"get_slashes_unnormalized",
                             "GET",
                             "//example//",
                             {},
                             {},
                             "",
                             "host;x-amz-date",
                             "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
                      Vector{"get_header_value_trim",
                             "GET",
                             "/",
                             {},
                             {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
                             "",
                             "host;my-header1;my-header2;x-amz-date",
                             "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
                      Vector{"get_header_key_duplicate",
                             "GET",
                             "/",
                             {},
                             {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}},
                             "",
                             "host;my-header1;x-amz-date",
                             "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
                      Vector{
                          "post_x_www_form_urlencoded",
                          "POST",
                          "/",
                          {},
                          {{"Content-Type", "application/x-www-form-urlencoded"}, {"Content-Length", "13"}},
                          "Param1=value1",
                          "content-length;content-type;host;x-amz-content-sha256;x-amz-date",
                          "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(SigV4, ASessionTokenIsSigned) {
  const Vector vector{"get_vanilla_with_session_token", "GET", "/", {}, {}, "", "", ""};
  const Credentials credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                                "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"};
  EXPECT_EQ(
      Sign(vector, credentials, {"us-east-1", "service"}, "example.amazonaws.com", "20150830T123600Z", false),
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
      "SignedHeaders=host;x-amz-date;x-amz-security-token, "
      "Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
}

TEST(SigV4, TheCanonicalRequestIsTheOneOfTheReference) {
  const SignedRequest request{.method = "GET",
                              .path = "/test.txt",
                              .query = {},
                              .headers = {{"Range", "bytes=0-9"},
                                          {"Host", "examplebucket.s3.amazonaws.com"},
                                          {"x-amz-date", "20130524T000000Z"},
                                          {"x-amz-content-sha256", kEmpty}},
                              .payload_sha256 = kEmpty};
  EXPECT_EQ(CanonicalRequest(request),
            "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
            "x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
            "x-amz-date:20130524T000000Z\n\nhost;range;x-amz-content-sha256;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(SigV4, QueriesAreSortedAsTheyAreEncoded) {
  // '~' stands before '%7C' in no order but that of the encoded bytes.
  EXPECT_EQ(CanonicalQuery({{"a|", "1"}, {"a~", "2"}, {"a", "z"}, {"a", "b c"}, {"a", "+"}}),
            "a=%2B&a=b%20c&a=z&a%7C=1&a~=2");
}

TEST(SigV4, DatesAreUtc) {
  EXPECT_EQ(AmzDate(0), "19700101T000000Z");
  EXPECT_EQ(AmzDate(1'369'353'600'999), "20130524T000000Z");
  EXPECT_EQ(AmzDate(1'709'251'199'000), "20240229T235959Z");
}

}  // namespace
}  // namespace kvstore::s3
