#include "blobstore/s3_answers.h"

#include <fmt/format.h>

#include <charconv>

#include "absl/strings/escaping.h"
#include "blobstore/blob_name.h"
#include "blobstore/s3_errors.h"
#include "blobstore/xml.h"

namespace kvstore::s3 {
namespace {

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Decodes a name of a list with the encoding "url".
std::string UrlDecoded(std::string_view text) {
  std::string decoded;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool is_escape =
        text[at] == '%' && at + 2 < text.size() && HexValue(text[at + 1]) >= 0 && HexValue(text[at + 2]) >= 0;
    if (is_escape) {
      decoded += static_cast<char>(HexValue(text[at + 1]) * 16 + HexValue(text[at + 2]));
      at += 2;
    } else {
      decoded += text[at] == '+' ? ' ' : text[at];
    }
  }
  return decoded;
}

absl::Status Malformed(std::string_view problem) {
  return absl::DataLossError(fmt::format("a list of the server is malformed: {}", problem));
}

}  // namespace

std::string ChecksumHeader(const Sha256Digest& digest) {
  const std::string_view bytes = Bytes(digest);
  return absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
}

std::string ChecksumFrom(std::string_view text) {
  const size_t dash = std::min(text.find('-'), text.size());
  const std::string_view pieces = text.substr(dash);
  std::string digest;
  if (!absl::Base64Unescape(absl::string_view(text.data(), dash), &digest) ||
      digest.size() != sizeof(Sha256Digest)) {
    return "";
  }
  if (!pieces.empty() && !ParseNumber(pieces.substr(1))) return "";
  return absl::BytesToHexString(digest) + std::string(pieces);
}

std::string ChecksumOf(const HttpExchange& exchange) {
  std::string checksum = ChecksumFrom(exchange.Header("x-amz-checksum-sha256"));
  // Some servers leave out the number of pieces, without which it would be taken for that of one piece.
  const bool is_composite = exchange.Header("x-amz-checksum-type") == "COMPOSITE";
  if (is_composite && checksum.find('-') == std::string::npos) return "";
  return checksum;
}

std::optional<uint64_t> ContentLength(const HttpExchange& exchange) {
  return ParseNumber(exchange.Header("content-length"));
}

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash) return std::nullopt;
  const auto first = ParseNumber(text.substr(0, dash));
  const auto last = ParseNumber(text.substr(dash + 1, slash - dash - 1));
  const auto total = ParseNumber(text.substr(slash + 1));
  if (!first || !last || !total || *first > *last || *last >= *total) return std::nullopt;
  return ContentRange{*first, *last, *total};
}

absl::StatusOr<BlobPage> ParseList(std::string_view xml, std::string_view store_prefix,
                                   std::string_view prefix, std::string_view after) {
  const auto document = ParseXml(xml);
  if (!document.ok()) return document.status();
  if (document->name != "ListBucketResult") return Malformed("no ListBucketResult in it");
  const bool is_encoded = document->TextOf("EncodingType") == "url";
  const std::string wanted = fmt::format("{}{}", store_prefix, prefix);
  std::string last(after);
  BlobPage page;
  for (const XmlElement& object : document->children) {
    if (object.name != "Contents") continue;
    const std::string sent = object.TextOf("Key");
    const std::string key = is_encoded ? UrlDecoded(sent) : sent;
    if (!key.starts_with(wanted)) return Malformed("a name has another prefix than was asked for");
    std::string name = key.substr(store_prefix.size());
    if (name <= last) return Malformed("its names are not in order");
    last = name;
    const auto size = ParseNumber(object.TextOf("Size"));
    const auto modified_ms = ParseTime(object.TextOf("LastModified"));
    if (!size || !modified_ms) return Malformed("a Size or a LastModified is missing or malformed");
    if (CheckBlobName(name).ok()) page.blobs.push_back({std::move(name), *size, *modified_ms});
  }
  if (document->TextOf("IsTruncated") != "true") return page;
  if (last == after) return Malformed("it is cut short and has no name to go on after");
  page.next = last;
  return page;
}

}  // namespace kvstore::s3
