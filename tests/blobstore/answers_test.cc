#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/markup.h"
#include "blobstore/blob_checksum.h"
#include "blobstore/s3_answers.h"
#include "blobstore/s3_errors.h"
#include "blobstore/s3_location.h"
#include "blobstore/xml.h"
#include "tests/support/status_matchers.h"

namespace kvstore::s3 {
namespace {

using absl::StatusCode;
using kvstore::testing::FailsWith;

std::string Object(const std::string& key, const std::string& size = "7",
                   const std::string& time = "2026-11-23T23:31:29.123Z") {
  return fmt::format("<Contents><Key>{}</Key><LastModified>{}</LastModified><Size>{}</Size></Contents>", key,
                     time, size);
}

std::string ListOf(const std::string& objects, const std::string& rest = "") {
  return fmt::format(
      "<?xml version=\"1.0\"?><ListBucketResult "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}{}</ListBucketResult>",
      objects, rest);
}

TEST(Xml, TextAndChildrenAreRead) {
  ASSERT_OK_AND_ASSIGN(
      const XmlElement root,
      ParseXml("<?xml version=\"1.0\"?>\n<a x='1'><b>1 &lt;<!-- no --> 2</b><b/><c><![CDATA[<d>]]></c></a>"));
  EXPECT_EQ(root.name, "a");
  ASSERT_EQ(root.children.size(), 3u);
  EXPECT_EQ(root.TextOf("b"), "1 < 2");
  EXPECT_EQ(root.TextOf("c"), "<d>");
  EXPECT_EQ(root.TextOf("none"), "");
  EXPECT_EQ(root.Child("none"), nullptr);
}

TEST(Xml, HostileDocumentsAreRefused) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_THAT(ParseXml(deep), FailsWith(StatusCode::kDataLoss, "nests deeper"));
  std::string wide = "<a>";
  for (int i = 0; i < 60'000; ++i) wide += "<b/>";
  EXPECT_THAT(ParseXml(wide + "</a>"), FailsWith(StatusCode::kDataLoss, "elements"));
  EXPECT_THAT(ParseXml("<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>"),
              FailsWith(StatusCode::kDataLoss, "document type"));
  EXPECT_THAT(ParseXml("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"),
              FailsWith(StatusCode::kDataLoss, "document type"));
  for (const char* text : {"", "no", "<a>", "<a></b>", "<a/><b/>", "<a>&b;</a>", "<a>\x01</a>"}) {
    EXPECT_THAT(ParseXml(text), FailsWith(StatusCode::kDataLoss, "malformed")) << text;
  }
}

TEST(Xml, WhatIsEscapedIsReadBack) {
  const std::string text = "a<b>&\"c\"&amp;";
  ASSERT_OK_AND_ASSIGN(const XmlElement root, ParseXml("<a>" + EscapeMarkup(text) + "</a>"));
  EXPECT_EQ(root.text, text);
}

TEST(Lists, NamesAreCutAndOthersLeftOut) {
  const std::string xml = ListOf(Object("p/") + Object("p/.hidden") + Object("p/a b") + Object("p/a/b", "12"),
                                 "<IsTruncated>true</IsTruncated>");
  ASSERT_OK_AND_ASSIGN(const BlobPage page, ParseList(xml, "p", "/", ""));
  EXPECT_TRUE(page.blobs.empty());  // "/a/b" is no name
  ASSERT_OK_AND_ASSIGN(const BlobPage cut,
                       ParseList(ListOf(Object("p/a") + Object("p/a/b", "12")), "p/", "", ""));
  ASSERT_EQ(cut.blobs.size(), 2u);
  EXPECT_EQ(cut.blobs[1].name, "a/b");
  EXPECT_EQ(cut.blobs[1].size, 12u);
  EXPECT_EQ(cut.blobs[1].modified_ms, 1'795'476'689'000u);
  EXPECT_EQ(cut.next, "");
}

TEST(Lists, APageWithoutBlobsGoesOn) {
  const std::string xml =
      ListOf("<EncodingType>url</EncodingType>" + Object("p/a%2Bb+c"), "<IsTruncated>true</IsTruncated>");
  ASSERT_OK_AND_ASSIGN(const BlobPage page, ParseList(xml, "p/", "", ""));
  EXPECT_TRUE(page.blobs.empty());
  EXPECT_EQ(page.next, "a+b c");
}

TEST(Lists, AListThatWouldNeverEndIsRefused) {
  const std::string truncated = "<IsTruncated>true</IsTruncated>";
  EXPECT_THAT(ParseList(ListOf("", truncated), "", "", "b"), FailsWith(StatusCode::kDataLoss, "go on after"));
  EXPECT_THAT(ParseList(ListOf(Object("b"), truncated), "", "", "b"),
              FailsWith(StatusCode::kDataLoss, "order"));
  EXPECT_THAT(ParseList(ListOf(Object("a"), truncated), "", "", "b"),
              FailsWith(StatusCode::kDataLoss, "order"));
  EXPECT_THAT(ParseList(ListOf(Object("c") + Object("c")), "", "", ""),
              FailsWith(StatusCode::kDataLoss, "order"));
  EXPECT_THAT(ParseList(ListOf(Object("q/c")), "p/", "", ""), FailsWith(StatusCode::kDataLoss, "prefix"));
  EXPECT_THAT(ParseList(ListOf(Object("a", "-1")), "", "", ""), FailsWith(StatusCode::kDataLoss, "Size"));
  EXPECT_THAT(ParseList(ListOf(Object("a", "1", "yesterday")), "", "", ""),
              FailsWith(StatusCode::kDataLoss, "LastModified"));
  EXPECT_THAT(ParseList("<Error/>", "", "", ""), FailsWith(StatusCode::kDataLoss, "ListBucketResult"));
}

TEST(Checksums, AreTheOnesOfS3) {
  const Sha256Digest digest = Sha256Of("hello");
  EXPECT_EQ(ChecksumHeader(digest), "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
  EXPECT_EQ(ChecksumFrom("LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="), BlobChecksum({digest}));
  EXPECT_EQ(ChecksumFrom("LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=-12"), Hex(digest) + "-12");
  for (const char* text : {"", "LPJN", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=-x", "-2", "?"})
    EXPECT_EQ(ChecksumFrom(text), "") << text;
}

TEST(Checksums, OfSeveralPiecesIsThatOfTheirDigests) {
  // Two parts of an upload, 5 MiB of 'x' and 1,000 bytes of 'y'; versitygw 1.8 answered with this checksum.
  const std::string checksum =
      BlobChecksum({Sha256Of(std::string(5 << 20, 'x')), Sha256Of(std::string(1000, 'y'))});
  EXPECT_EQ(checksum, ChecksumFrom("jLTstqfdMiaL68EipugaXAvFQdzpqSCo3VC3GOZqDaE=-2"));
}

TEST(Checksums, AreTheSameHoweverTheBytesCome) {
  const std::string bytes(kBlobPieceBytes + 3, 'z');
  BlobHasher at_once;
  at_once.Add(bytes);
  BlobHasher in_parts;
  for (size_t at = 0; at < bytes.size(); at += 7'777'777)
    in_parts.Add(std::string_view(bytes).substr(at, 7'777'777));
  const std::string checksum = at_once.Finish();
  EXPECT_EQ(checksum, in_parts.Finish());
  EXPECT_EQ(checksum, BlobChecksum({Sha256Of(bytes.substr(0, kBlobPieceBytes)), Sha256Of("zzz")}));
  // A blob of exactly one piece has a plain checksum, as it is sent in one request.
  BlobHasher full;
  full.Add(std::string_view(bytes).substr(0, kBlobPieceBytes));
  EXPECT_EQ(full.Finish(), Hex(Sha256Of(bytes.substr(0, kBlobPieceBytes))));
}

TEST(ContentRanges, AreStrict) {
  const auto range = ParseContentRange("bytes 5-9/10");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->first, 5u);
  EXPECT_EQ(range->last, 9u);
  EXPECT_EQ(range->total, 10u);
  for (const char* text :
       {"", "bytes 9-5/10", "bytes 5-10/10", "bytes */10", "bytes 5-9/*", "5-9/10", "bytes 5-9/10 "}) {
    EXPECT_FALSE(ParseContentRange(text).has_value()) << text;
  }
}

TEST(Locations, AreReadFromUrlAndOptions) {
  ASSERT_OK_AND_ASSIGN(const S3Location aws,
                       LocateS3("s3://my-bucket/a/b/", {.endpoint = "https://s3.eu-west-1.amazonaws.com",
                                                        .region = "eu-west-1",
                                                        .path_style = false}));
  EXPECT_EQ(aws.host, "my-bucket.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(aws.server, "https://my-bucket.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(aws.path, "/");
  EXPECT_EQ(aws.prefix, "a/b/");
  ASSERT_OK_AND_ASSIGN(const S3Location other,
                       LocateS3("s3://my-bucket", {.endpoint = "https://minio.example.com:443/"}));
  EXPECT_EQ(other.server, "https://minio.example.com");
  EXPECT_EQ(other.path, "/my-bucket/");
  EXPECT_EQ(other.prefix, "");
  EXPECT_EQ(LocateS3("s3://my-bucket", {.endpoint = "http://127.0.0.1:9000"})->host, "127.0.0.1:9000");
}

TEST(Locations, WhatTheOptionsLeaveOpenIsTakenFromTheEnvironment) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"})
    ::unsetenv(name);
  EXPECT_EQ(LocateS3("s3://my-bucket", {})->server, "https://my-bucket.s3.us-east-1.amazonaws.com");
  // No certificate covers names below a bucket's with a '.'.
  EXPECT_EQ(LocateS3("s3://my.bucket", {})->server, "https://s3.us-east-1.amazonaws.com");
  ::setenv("AWS_DEFAULT_REGION", "eu-west-2", 1);
  EXPECT_EQ(LocateS3("s3://my-bucket", {})->server, "https://my-bucket.s3.eu-west-2.amazonaws.com");
  ::setenv("AWS_REGION", "eu-west-3", 1);
  ::setenv("AWS_ENDPOINT_URL", "https://vendor.example.com:9000", 1);
  const auto location = LocateS3("s3://my-bucket", {});
  EXPECT_EQ(location->region, "eu-west-3");
  EXPECT_EQ(location->server + location->path, "https://vendor.example.com:9000/my-bucket/");
  EXPECT_EQ(LocateS3("s3://my-bucket", {.region = "r"})->region, "r");
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"}) ::unsetenv(name);
}

TEST(Locations, WhatIsWrongIsNamed) {
  const S3Options good{.endpoint = "https://h", .region = "r"};
  for (const char* bucket :
       {"s3://", "s3://ab", "s3://Ab-c", "s3://a_b", "s3://abc.", "s3://a..b", "s3://a%62c"}) {
    EXPECT_THAT(LocateS3(bucket, good), FailsWith(StatusCode::kInvalidArgument, "bucket:")) << bucket;
  }
  EXPECT_THAT(LocateS3("s3://abc/a//b", good), FailsWith(StatusCode::kInvalidArgument, "name of a blob"));
  EXPECT_THAT(LocateS3("s3://abc/..", good), FailsWith(StatusCode::kInvalidArgument, "name of a blob"));
  for (const char* endpoint :
       {"h", "ftp://h", "https://", "https://h/x", "https://u:p@h", "https://h?x", "https://h\r\nx: y"}) {
    EXPECT_THAT(LocateS3("s3://abc", {.endpoint = endpoint}),
                FailsWith(StatusCode::kInvalidArgument, "endpoint:"))
        << endpoint;
  }
  EXPECT_THAT(LocateS3("s3://abc", {.endpoint = "http://example.com"}),
              FailsWith(StatusCode::kInvalidArgument, "this machine only"));
  EXPECT_THAT(LocateS3("s3://abc", {.endpoint = "https://h", .region = "a/b"}),
              FailsWith(StatusCode::kInvalidArgument, "region:"));
}

}  // namespace
}  // namespace kvstore::s3
