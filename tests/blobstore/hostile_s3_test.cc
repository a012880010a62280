#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "blobstore/blob_checksum.h"
#include "blobstore/open_blob_store.h"
#include "blobstore/s3_answers.h"
#include "kvstore_api/call_scope.h"
#include "tests/blobstore/hostile_http.h"
#include "tests/support/eventually.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

/// Servers that fail, lie or mean harm.
namespace kvstore {
namespace {

using absl::StatusCode;
using testing::FailsWith;
using testing::HostileHttp;
using Request = HostileHttp::Request;
using Answer = HostileHttp::Answer;

constexpr char kSecret[] = "TheSecretOfTheTests";

std::string Error(const std::string& code, const std::string& more = "") {
  return fmt::format("<?xml version=\"1.0\"?>\n<Error><Code>{}</Code><Message>some words</Message>{}</Error>",
                     code, more);
}

std::string ChecksumLine(std::string_view bytes) {
  return fmt::format("x-amz-checksum-sha256: {}\r\n", s3::ChecksumHeader(Sha256Of(bytes)));
}

/// A blob of a whole piece and ten bytes, which is sent as a multipart upload.
BlobSource TwoPieces() {
  return [left = kBlobPieceBytes + 10](std::span<char> buffer) mutable -> absl::StatusOr<size_t> {
    const size_t size = std::min<uint64_t>(buffer.size(), left);
    std::fill_n(buffer.data(), size, 'p');
    left -= size;
    return size;
  };
}

class HostileS3 : public ::testing::Test {
 protected:
  HostileS3() {
    options_.credentials_file = dir_ / "keys";
    std::ofstream(options_.credentials_file)
        << "[default]\naws_access_key_id = AKID\naws_secret_access_key = " << kSecret << "\n";
    ::chmod(options_.credentials_file.c_str(), 0600);
    options_.region = "us-east-1";
    options_.retry_base_ms = 1;
    options_.retry_for_ms = 20'000;
  }

  /// Opens a store whose server is `handler`.
  void Serve(HostileHttp::Handler handler) {
    server_ = std::make_unique<HostileHttp>(std::move(handler));
    options_.endpoint = fmt::format("http://127.0.0.1:{}", server_->port());
    auto store = OpenBlobStore("s3://bucket/p", options_);
    ASSERT_OK(store);
    store_ = *std::move(store);
  }

  absl::Status Put(PutMode mode = PutMode::kReplace) { return store_->Put("a", "hello", mode).status(); }
  absl::StatusOr<std::string> Read(const BlobInfo& expected) {
    std::string read;
    const auto status = store_->Read("a", expected, [&](uint64_t offset, std::string_view bytes) {
      EXPECT_EQ(offset, read.size());  // no byte twice
      read += bytes;
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return read;
  }

  const testing::TempDir dir_;
  S3Options options_;
  std::unique_ptr<HostileHttp> server_;
  std::unique_ptr<BlobStore> store_;
};

TEST_F(HostileS3, WhatFailsInPassingIsTriedAgain) {
  Serve([](const Request&, int number, Answer& answer) {
    switch (number) {
      case 1:
        answer.Send(503, "", Error("SlowDown"));
        break;
      case 2:
        answer.Send(500, "", "no XML <");
        break;
      case 3:
        answer.Send(429, "", "");
        break;
      case 4:
        answer.Send(400, "", Error("RequestTimeout"));
        break;
      case 5:
        answer.Send(409, "", Error("ConditionalRequestConflict"));
        break;
      case 6:
        answer.Send(400, "", Error("BadDigest"));
        break;
      case 7:
        answer.Close();
        break;
      default:
        answer.Send(200, "", "");
    }
  });
  EXPECT_OK(Put());
  EXPECT_EQ(server_->Requests().size(), 8u);
  // Each attempt sends the whole body.
  for (const Request& request : server_->Requests()) EXPECT_EQ(request.body, "hello");
}

TEST_F(HostileS3, WhatGoesOnFailingIsUnavailable) {
  options_.retry_for_ms = 100;
  Serve([](const Request&, int, Answer& answer) { answer.Send(503, "", Error("SlowDown")); });
  const absl::Status status = Put();
  EXPECT_THAT(status, FailsWith(StatusCode::kUnavailable, "answers 503 SlowDown: some words (attempt"));
  EXPECT_THAT(status, FailsWith(StatusCode::kUnavailable, "s3://bucket/p: PUT a"));
  EXPECT_GT(server_->Requests().size(), 1u);
}

TEST_F(HostileS3, AServerThatIsNotThereIsUnavailable) {
  Serve([](const Request&, int, Answer&) {});
  server_.reset();
  options_.retry_for_ms = 50;
  ASSERT_OK_AND_ASSIGN(const auto store, OpenBlobStore("s3://bucket", options_));
  EXPECT_THAT(store->Get("a", 10), FailsWith(StatusCode::kUnavailable, options_.endpoint));
}

TEST_F(HostileS3, AStallEndsAndIsTriedAgain) {
  options_.stall_timeout_ms = 1000;
  Serve([](const Request&, int number, Answer& answer) {
    if (number == 1) return answer.Stall();
    if (number == 2) {
      answer.Send("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe");
      return answer.Stall();
    }
    answer.Send(200, "", "hello");
  });
  EXPECT_EQ(*store_->Get("a", 10), "hello");
  EXPECT_EQ(server_->Requests().size(), 3u);
}

TEST_F(HostileS3, AReadThatIsCutOffGoesOnWhereItWas) {
  std::string bytes;
  for (int i = 0; bytes.size() < 1'000'000; ++i) bytes += std::to_string(i);
  const BlobInfo expected{.size = bytes.size(), .checksum = Hex(Sha256Of(bytes))};
  Serve([&](const Request& request, int number, Answer& answer) {
    const std::string range = request.headers.at("range");
    const size_t from = std::stoull(range.substr(6));
    EXPECT_EQ(range, fmt::format("bytes={}-{}", from, bytes.size() - 1));
    answer.Send(fmt::format("HTTP/1.1 206 OK\r\ncontent-length: {}\r\ncontent-range: bytes {}-{}/{}\r\n\r\n",
                            bytes.size() - from, from, bytes.size() - 1, bytes.size()));
    // The connection is cut after another third each time.
    answer.Send(bytes.substr(from, number < 3 ? 333'333 : std::string::npos));
    if (number < 3) answer.Close();
  });
  ASSERT_OK_AND_ASSIGN(const std::string read, Read(expected));
  EXPECT_TRUE(read == bytes);
  EXPECT_EQ(server_->Requests().size(), 3u);
}

TEST_F(HostileS3, ABlobThatIsReplacedWhileItIsReadIsDataLoss) {
  Serve([&](const Request&, int number, Answer& answer) {
    if (number == 1) {
      answer.Send(
          "HTTP/1.1 206 OK\r\netag: \"1\"\r\ncontent-length: 10\r\ncontent-range: bytes 0-9/10\r\n\r\n01234");
      return answer.Close();
    }
    answer.Send(206, "etag: \"2\"\r\ncontent-range: bytes 5-9/10\r\n", "56789");
  });
  EXPECT_THAT(Read({.size = 10}), FailsWith(StatusCode::kDataLoss, "replaced while it was read"));
}

TEST_F(HostileS3, BytesThatAreNotThoseThatWerePutAreDataLoss) {
  Serve([&](const Request& request, int, Answer& answer) {
    const bool is_range = request.headers.contains("range");
    if (request.method == "PUT") return (void)answer.Send(200, ChecksumLine("jello"), "");
    answer.Send(is_range ? 206 : 200,
                ChecksumLine("hello") + (is_range ? "content-range: bytes 0-4/5\r\n" : ""), "jello");
  });
  EXPECT_THAT(Put(), FailsWith(StatusCode::kDataLoss, "other bytes than were sent"));
  EXPECT_THAT(store_->Get("a", 10), FailsWith(StatusCode::kDataLoss, "checksum"));
  EXPECT_THAT(Read({.size = 5, .checksum = Hex(Sha256Of("hello"))}),
              FailsWith(StatusCode::kDataLoss, "its checksum is"));
}

TEST_F(HostileS3, AnswersToOtherQuestionsAreDataLoss) {
  std::string headers;
  int status = 206;
  Serve([&](const Request&, int, Answer& answer) { answer.Send(status, headers, "01234"); });
  for (const char* range : {"", "content-range: bytes 1-5/10\r\n", "content-range: bytes 0-9/10\r\n",
                            "content-range: bytes 0-4/9\r\n"}) {
    headers = range;
    EXPECT_THAT(Read({.size = 5}), FailsWith(StatusCode::kDataLoss, "")) << range;
  }
  headers = "content-range: bytes 3-7/10\r\n";
  EXPECT_THAT(store_->GetRange("a", 2, 5), FailsWith(StatusCode::kDataLoss, "another range"));
  headers = "content-range: bytes 2-9/10\r\n";
  EXPECT_THAT(store_->GetRange("a", 2, 5), FailsWith(StatusCode::kDataLoss, "another range"));
  headers = "content-range: bytes 2-4/10\r\n";  // says three bytes, and sends five
  EXPECT_THAT(store_->GetRange("a", 2, 5), FailsWith(StatusCode::kDataLoss, "more than was asked for"));
  status = 200;  // as if the range had not been asked for
  headers = "";
  EXPECT_THAT(store_->GetRange("a", 2, 5), FailsWith(StatusCode::kDataLoss, "another range"));
}

TEST_F(HostileS3, AFullStoreIsSaidAtOnce) {
  for (const char* code : {"QuotaExceeded", "XMinioStorageFull"}) {
    Serve([&](const Request&, int, Answer& answer) {
      answer.Send(code[0] == 'Q' ? 403 : 507, "", Error(code));
    });
    EXPECT_THAT(Put(), FailsWith(StatusCode::kResourceExhausted, "the store is full"));
    EXPECT_EQ(server_->Requests().size(), 1u);
  }
}

TEST_F(HostileS3, AClockApartIsSaidByTheServersTime) {
  Serve([](const Request&, int, Answer& answer) {
    answer.Send(403, "", Error("RequestTimeTooSkewed", "<ServerTime>2099-01-01T00:00:00Z</ServerTime>"));
  });
  EXPECT_THAT(Put(), FailsWith(StatusCode::kFailedPrecondition, "days behind the server's; set it"));
  Serve([](const Request&, int, Answer& answer) {
    answer.Send(403, "date: Sat, 01 Jan 2000 00:00:00 GMT\r\n", Error("RequestTimeTooSkewed"));
  });
  EXPECT_THAT(Put(), FailsWith(StatusCode::kFailedPrecondition, "days ahead of the server's"));
}

TEST_F(HostileS3, AnotherRegionIsNamedAndNotFollowedThere) {
  HostileHttp elsewhere([](const Request&, int, Answer& answer) { answer.Send(200, "", ""); });
  Serve([&](const Request& request, int, Answer& answer) {
    if (request.target.find("list-type") != std::string::npos) {
      return (void)answer.Send(400, "", Error("AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"));
    }
    answer.Send(301,
                fmt::format("location: http://127.0.0.1:{}/\r\nx-amz-bucket-region: eu-central-1\r\n",
                            elsewhere.port()),
                Error("PermanentRedirect"));
  });
  EXPECT_THAT(Put(),
              FailsWith(StatusCode::kFailedPrecondition,
                        "the bucket is in the region eu-central-1, and requests are made to us-east-1"));
  EXPECT_THAT(store_->List("", "", 10), FailsWith(StatusCode::kFailedPrecondition, "eu-west-3"));
  EXPECT_THAT(store_->Stat("a"), FailsWith(StatusCode::kFailedPrecondition, "eu-central-1"));
  EXPECT_TRUE(elsewhere.Requests().empty());
}

TEST_F(HostileS3, RightsAndKeysAreToldApart) {
  std::string code;
  Serve([&](const Request&, int, Answer& answer) { answer.Send(403, "", Error(code)); });
  const std::vector<std::pair<std::string, StatusCode>> codes = {
      {"AccessDenied", StatusCode::kPermissionDenied},
      {"InvalidAccessKeyId", StatusCode::kUnauthenticated},
      {"SignatureDoesNotMatch", StatusCode::kUnauthenticated},
      {"ExpiredToken", StatusCode::kUnauthenticated}};
  for (const auto& [name, status] : codes) {
    code = name;
    EXPECT_THAT(Put(), FailsWith(status, "")) << name;
  }
}

TEST_F(HostileS3, NoSecretIsSentOrSaid) {
  // The server sends back all that it was told.
  Serve([](const Request& request, int, Answer& answer) {
    std::string told;
    for (const auto& [name, value] : request.headers) told += name + ": " + value + "\n";
    answer.Send(403, "",
                fmt::format("<Error><Code>SignatureDoesNotMatch</Code><Message>{}</Message></Error>", told));
  });
  EXPECT_EQ(Put().ToString().find(kSecret), std::string::npos);
  for (const Request& request : server_->Requests()) {
    for (const auto& [name, value] : request.headers)
      EXPECT_EQ(value.find(kSecret), std::string::npos) << name;
    EXPECT_TRUE(request.headers.at("authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKID/"));
  }
}

TEST_F(HostileS3, ASessionTokenIsSentAndSigned) {
  std::ofstream(options_.credentials_file, std::ios::app) << "aws_session_token = TheToken\n";
  Serve([](const Request&, int, Answer& answer) { answer.Send(200, "", ""); });
  EXPECT_OK(Put());
  const auto headers = server_->Requests().at(0).headers;
  EXPECT_EQ(headers.at("x-amz-security-token"), "TheToken");
  EXPECT_NE(headers.at("authorization").find(";x-amz-security-token,"), std::string::npos);
}

TEST_F(HostileS3, PiecesAreReadAtTheSameTime) {
  const uint64_t size = kBlobPieceBytes + 5;
  std::atomic<int> asked{0};
  Serve([&](const Request& request, int, Answer& answer) {
    ++asked;
    // No piece is sent before both are asked for.
    EXPECT_TRUE(testing::Eventually([&] { return asked == 2; }));
    const bool is_first = request.headers.at("range").starts_with("bytes=0-");
    const uint64_t first = is_first ? 0 : kBlobPieceBytes;
    const uint64_t last = is_first ? kBlobPieceBytes - 1 : size - 1;
    answer.Send(206, fmt::format("content-range: bytes {}-{}/{}\r\n", first, last, size),
                std::string(last - first + 1, 'p'));
  });
  BlobHasher hasher;
  hasher.Add(std::string(size, 'p'));
  uint64_t received = 0;
  const auto sink = [&](uint64_t, std::string_view bytes) {
    received += bytes.size();
    return absl::OkStatus();
  };
  EXPECT_OK(store_->Read("a", {.size = size, .checksum = hasher.Finish()}, sink));
  EXPECT_EQ(received, size);
}

TEST_F(HostileS3, TextOfAServerIsOneShortLine) {
  Serve([](const Request&, int, Answer& answer) {
    answer.Send(
        400, "",
        "<Error><Code>X\nY</Code><Message>\x1b[31m" + std::string(50'000, 'm') + "</Message></Error>");
  });
  const std::string said = Put().ToString();
  EXPECT_LT(said.size(), 600u);
  EXPECT_EQ(said.find('\n'), std::string::npos);
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

TEST_F(HostileS3, AnswersWithoutEndAreCutOff) {
  constexpr uint64_t kMost = uint64_t{64}
                             << 20;  // what the kernel's buffers hold comes on top of our own limits
  std::string head;
  std::string bytes;
  std::atomic<uint64_t> sent{0};
  Serve([&](const Request&, int, Answer& answer) {
    answer.Send(head);
    sent = answer.SendForEver(bytes);
  });
  const auto ends = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status;
    EXPECT_TRUE(testing::Eventually([&] { return sent > 0; }));
    EXPECT_LT(sent, kMost);
    sent = 0;
  };
  bytes = std::string(100'000, 'x');
  const std::string chunk = fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  head = "HTTP/1.1 200 OK\r\n\r\n";  // ends with the connection
  ends(store_->Get("a", 1000).status());
  ends(store_->List("", "", 10).status());
  ends(Put());
  head = "HTTP/1.1 400 Bad\r\n\r\n";
  ends(Put());
  head = "HTTP/1.1 206 OK\r\ncontent-range: bytes 0-9/10\r\n\r\n";
  ends(Read({.size = 10}).status());
  ends(store_->GetRange("a", 0, 10).status());
  head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  bytes = chunk;
  ends(store_->Get("a", 1000).status());
  head = "HTTP/1.1 200 OK\r\n";  // headers
  bytes = "x-header: " + std::string(1000, 'h') + "\r\n";
  ends(store_->Get("a", 1000).status());
}

TEST_F(HostileS3, HostileListsAreRefused) {
  std::string list;
  Serve([&](const Request&, int, Answer& answer) { answer.Send(200, "", list); });
  for (int i = 0; i < 200'000; ++i) list += "<a>";
  EXPECT_THAT(store_->List("", "", 10), FailsWith(StatusCode::kDataLoss, "nests deeper"));
  list = "<!DOCTYPE x [<!ENTITY a \"aaaa\">]><ListBucketResult>&a;</ListBucketResult>";
  EXPECT_THAT(store_->List("", "", 10), FailsWith(StatusCode::kDataLoss, "document type"));
  list = "<ListBucketResult><Contents><Key>p/b</Key>";  // cut off
  EXPECT_THAT(store_->List("", "", 10), FailsWith(StatusCode::kDataLoss, "malformed"));
}

TEST_F(HostileS3, APutWhoseAnswerWasLostIsRecognised) {
  std::string there = "hello";
  bool keeps_checksums = true;
  Serve([&](const Request& request, int, Answer& answer) {
    const std::string checksum = keeps_checksums ? ChecksumLine(there) : "";
    if (request.method == "HEAD")
      return (void)answer.Send(
          fmt::format("HTTP/1.1 200 OK\r\n{}content-length: {}\r\n\r\n", checksum, there.size()));
    if (request.method == "GET") {
      return (void)answer.Send(
          206, fmt::format("content-range: bytes 0-{}/{}\r\n", there.size() - 1, there.size()), there);
    }
    EXPECT_EQ(request.headers.at("if-none-match"), "*");
    static std::atomic<int> puts{0};
    if (puts++ % 2 == 0) return answer.Close();
    answer.Send(412, "", Error("PreconditionFailed"));
  });
  EXPECT_OK(Put(PutMode::kIfAbsent));
  keeps_checksums = false;
  EXPECT_OK(Put(PutMode::kIfAbsent));
  for (const bool keeps : {true, false}) {
    keeps_checksums = keeps;
    for (const char* other : {"jello", "hello!"}) {
      there = other;
      EXPECT_THAT(Put(PutMode::kIfAbsent), FailsWith(StatusCode::kAlreadyExists, "a")) << other;
    }
  }
}

TEST_F(HostileS3, APutThatIsSentAgainBecauseAKeptConnectionEndedIsRecognised) {
  // The libcurl of Debian 13 sends it again itself. Older ones leave that to S3Client, which looked already.
  Serve([&](const Request& request, int number, Answer& answer) {
    if (request.method == "HEAD") {
      return (void)answer.Send(
          fmt::format("HTTP/1.1 200 OK\r\n{}content-length: 5\r\n\r\n", ChecksumLine("hello")));
    }
    if (number == 1) return (void)answer.Send(200, ChecksumLine("hello"), "");
    if (number == 2) return answer.Close();  // it was stored, and its answer is lost
    answer.Send(412, "", Error("PreconditionFailed"));
  });
  EXPECT_OK(Put(PutMode::kIfAbsent));
  EXPECT_OK(Put(PutMode::kIfAbsent));
  EXPECT_EQ(server_->Requests().size(), 4u);
}

TEST_F(HostileS3, AnUploadThatFailsIsAborted) {
  Serve([](const Request& request, int, Answer& answer) {
    if (request.target.ends_with("?uploads="))
      return (void)answer.Send(200, "", "<R><UploadId>the/id</UploadId></R>");
    if (request.target.find("partNumber=2") != std::string::npos)
      return (void)answer.Send(403, "", Error("AccessDenied"));
    answer.Send(request.method == "DELETE" ? 204 : 200, "etag: \"e\"\r\n", "");
  });
  EXPECT_THAT(store_->PutStream("a", TwoPieces(), PutMode::kReplace),
              FailsWith(StatusCode::kPermissionDenied, "lacks a right"));
  const auto requests = server_->Requests();
  EXPECT_EQ(requests.back().method, "DELETE");
  EXPECT_EQ(requests.back().target, "/bucket/p/a?uploadId=the%2Fid");
}

TEST_F(HostileS3, AnErrorWithStatus200IsAnError) {
  std::atomic<int> completed{0};
  Serve([&](const Request& request, int, Answer& answer) {
    if (request.target.ends_with("?uploads="))
      return (void)answer.Send(200, "", "<R><UploadId>id</UploadId></R>");
    if (request.method != "POST") return (void)answer.Send(200, "etag: \"e\"\r\n", "");
    // The first answer says 200 and then fails; the second puts together other bytes.
    answer.Send(
        200, "",
        ++completed == 1
            ? Error("InternalError")
            : "<R><ChecksumSHA256>LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=-2</ChecksumSHA256></R>");
  });
  EXPECT_THAT(store_->PutStream("a", TwoPieces(), PutMode::kReplace),
              FailsWith(StatusCode::kDataLoss, "put together other bytes"));
  EXPECT_EQ(completed, 2);
}

TEST_F(HostileS3, ACallEndsWithItsDeadlineAndWhenItIsCancelled) {
  std::atomic<int> stalled{0};
  Serve([&](const Request&, int, Answer& answer) {
    ++stalled;
    answer.Stall();
  });
  {
    const CallScope scope(std::chrono::milliseconds(100));
    EXPECT_THAT(Put(), FailsWith(StatusCode::kDeadlineExceeded, "PUT a"));
  }
  std::atomic<bool> cancelled{false};
  const int before = stalled;
  std::thread canceller([&] {
    EXPECT_TRUE(testing::Eventually([&] { return stalled > before; }));
    cancelled = true;
  });
  const CallScope scope(CallLimits{.cancelled = &cancelled});
  EXPECT_THAT(Put(), FailsWith(StatusCode::kCancelled, "PUT a"));
  canceller.join();
}

TEST_F(HostileS3, WhatAServerCannotDoIsSaidAtOnce) {
  Serve([](const Request&, int, Answer& answer) { answer.Send(501, "", Error("NotImplemented")); });
  EXPECT_THAT(Put(PutMode::kIfAbsent),
              FailsWith(StatusCode::kFailedPrecondition, "refuses the request: 501 NotImplemented"));
  EXPECT_EQ(server_->Requests().size(), 1u);
}

}  // namespace
}  // namespace kvstore
