#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "blobstore/blob_name.h"
#include "blobstore/s3_answers.h"
#include "blobstore/s3_errors.h"
#include "blobstore/xml.h"

using namespace kvstore;

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

/// An error is one line of bounded length that no terminal obeys, whatever the server wrote.
void CheckFailure(const s3::S3Failure& failure) {
  const std::string message(failure.status.message());
  Require(!failure.status.ok() && message.size() <= 1000 && failure.retry_after_ms <= 10'000);
  Require(std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c < 0x7F; }));
}

void CheckElement(const s3::XmlElement& element, size_t depth) {
  Require(depth <= 16);
  for (const s3::XmlElement& child : element.children) CheckElement(child, depth + 1);
}

void CheckList(std::string_view xml) {
  const std::string after = "a0";
  const auto page = s3::ParseList(xml, "p/", "a", after);
  if (!page.ok()) return;
  std::string last = after;
  for (const BlobEntry& blob : page->blobs) {
    Require(CheckBlobName(blob.name).ok() && blob.name.starts_with('a') && blob.name > last);
    last = blob.name;
  }
  // A list that goes on has got further, so it ends.
  Require(page->next.empty() || (page->next > after && page->next >= last));
}

void CheckHeader(std::string_view text) {
  if (const auto range = s3::ParseContentRange(text))
    Require(range->first <= range->last && range->last < range->total);
  if (const std::string checksum = s3::ChecksumFrom(text); !checksum.empty()) {
    const auto end = checksum.begin() + 64;
    Require(checksum.size() >= 64 && std::all_of(checksum.begin(), end, [](char c) {
              return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
            }));
    Require(end == checksum.end() || *end == '-');
  }
  static_cast<void>(s3::ParseTime(text));
}

}  // namespace

/// Any answer of an S3 server is refused, or says what an answer can say. The input is a byte that chooses
/// the status, a line that all headers have as their value, and the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::array<int, 12> kStatuses = {0, 200, 206, 301, 400, 403, 404, 409, 412, 429, 503, 507};
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string header(text.substr(0, end));
  const std::string_view body = text.substr(std::min(end + 1, text.size()));

  if (const auto document = s3::ParseXml(body); document.ok()) CheckElement(*document, 1);
  CheckList(body);
  CheckHeader(header);

  static const auto location =
      s3::LocateS3("s3://bucket/p", {.endpoint = "https://s3.example.com", .region = "us-east-1"});
  s3::HttpExchange exchange;
  exchange.status = kStatuses[data[0] % kStatuses.size()];
  for (const char* name : {"content-length", "content-range", "date", "retry-after", "x-amz-bucket-region",
                           "x-amz-checksum-sha256", "x-amz-checksum-type"}) {
    exchange.answer_headers[name] = header;
  }
  exchange.answer = body;
  constexpr uint64_t kNowMs = 1'800'000'000'000;
  const auto failure = s3::FailureOf(exchange, *location, kNowMs);
  Require(failure.has_value() == (exchange.status / 100 != 2));
  if (failure) CheckFailure(*failure);
  if (const auto hidden = s3::FailureInBody(exchange, *location, kNowMs)) CheckFailure(*hidden);
  static_cast<void>(s3::ContentLength(exchange));
  static_cast<void>(s3::ChecksumOf(exchange));
  return 0;
}
