#include "backup/log_segment.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "backup/checked_line.h"
#include "backup/layout.h"
#include "backup/zstd_level.h"
#include "base/big_endian.h"
#include "blobstore/blob_name.h"
#include "blobstore/sha256.h"
#include "json/bytes_json.h"
#include "json/json.h"
#include "json/json_fields.h"
#include "json/json_text.h"

namespace kvstore::backup {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kNumberDigits = 8;
/// A write may be larger than a segment is wanted to be: a batch of a client.
constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxMs = uint64_t{1} << 62;

absl::Status Damaged(std::string_view blob, std::string_view problem) {
  return absl::DataLossError(fmt::format("{}: {}", blob, problem));
}

std::string Pack(const std::string& body) {
  std::string packed(ZSTD_compressBound(body.size()), '\0');
  // It fails only if there is too little room.
  packed.resize(ZSTD_compress(packed.data(), packed.size(), body.data(), body.size(), kZstdLevel));
  return packed;
}

/// Reads the writes of a segment into it.
absl::Status ReadWrites(std::string_view body, std::string_view blob, LogSegment& segment) {
  uint64_t last = segment.after;
  while (!body.empty()) {
    constexpr size_t kHead = sizeof(uint64_t) + 2 * sizeof(uint32_t);
    if (body.size() < kHead) return Damaged(blob, "a write is cut off");
    LoggedWrite write{.number = ReadBigEndian<uint64_t>(body),
                      .changes = ReadBigEndian<uint32_t>(body.substr(sizeof(uint64_t))),
                      .bytes = ""};
    const auto size = ReadBigEndian<uint32_t>(body.substr(sizeof(uint64_t) + sizeof(uint32_t)));
    body.remove_prefix(kHead);
    if (body.size() < size) return Damaged(blob, "a write is cut off");
    if (write.number != last + 1 || write.changes == 0) return Damaged(blob, "its writes are not in order");
    write.bytes = std::string(body.substr(0, size));
    body.remove_prefix(size);
    last = write.last();
    segment.writes.push_back(std::move(write));
  }
  return last == segment.last ? absl::OkStatus() : Damaged(blob, "it lacks the last of its writes");
}

Json MarksToJson(const std::vector<LogMark>& marks) {
  Json list = Json::array();
  for (const LogMark& mark : marks) list.push_back({mark.at_ms, mark.last});
  return list;
}

void ReadMarks(JsonFields& fields, LogSegment& segment) {
  for (const Json& pair : fields.Array("marks")) {
    LogMark mark;
    const bool is_pair =
        pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() && pair[1].is_number_unsigned();
    if (is_pair) mark = {pair[0].get<uint64_t>(), pair[1].get<uint64_t>()};
    const bool ascends = segment.marks.empty() ||
                         (segment.marks.back().at_ms <= mark.at_ms && segment.marks.back().last <= mark.last);
    if (!is_pair || !ascends) return fields.Fail("marks", "must be pairs of a time and a number that ascend");
    segment.marks.push_back(mark);
  }
  if (segment.marks.empty()) fields.Fail("marks", "must not be empty");
}

void ReadSchema(JsonFields& fields, LogSchema& schema) {
  static const Json kNone = Json::object();
  const Json* const families = fields.Require("families");
  JsonFields names(families == nullptr ? kNone : *families, fields.Path("families") + ".");
  for (const auto& [id, name] : (families == nullptr ? kNone : *families).items()) {
    const auto number = UintFromJson(Json(id));
    if (number && *number <= UINT32_MAX) schema.families[static_cast<uint32_t>(*number)] = names.Bytes(id);
  }
  fields.Fail(names.Finish());
  const Json* const files = fields.Require("files");
  JsonFields texts(files == nullptr ? kNone : *files, fields.Path("files") + ".");
  for (const auto& [path, text] : (files == nullptr ? kNone : *files).items()) {
    // The rules of blobs' names are those of paths that stay below a folder on any system.
    if (CheckBlobName(path).ok()) schema.files[path] = texts.Bytes(path);
  }
  fields.Fail(texts.Finish());
}

}  // namespace

std::string SegmentBlob(std::string_view chain, uint64_t number) {
  return fmt::format("{}{}/{:0{}}", kLogPrefix, chain, number, kNumberDigits);
}

std::pair<std::string_view, uint64_t> PartsOfSegment(std::string_view blob) {
  if (!blob.starts_with(kLogPrefix)) return {};
  blob.remove_prefix(kLogPrefix.size());
  const size_t slash = blob.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view chain = blob.substr(0, slash);
  const std::string_view digits = blob.substr(slash + 1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || digits.size() != kNumberDigits || !CheckBackupId(chain).ok()) return {};
  return {chain, number};
}

std::string EncodeSegment(const LogSegment& segment) {
  std::string body;
  for (const LoggedWrite& write : segment.writes) {
    AppendBigEndian(body, write.number);
    AppendBigEndian(body, write.changes);
    AppendBigEndian(body, static_cast<uint32_t>(write.bytes.size()));
    body += write.bytes;
  }
  Json families = Json::object();
  for (const auto& [id, name] : segment.schema.families) families[std::to_string(id)] = BytesToJson(name);
  Json files = Json::object();
  for (const auto& [path, text] : segment.schema.files) files[path] = BytesToJson(text);
  Json head = {{"format", kFormat},
               {"chain", segment.chain},
               {"number", segment.number},
               {"previous", segment.previous},
               {"after", segment.after},
               {"last", segment.last},
               {"marks", MarksToJson(segment.marks)},
               {"families", std::move(families)},
               {"files", std::move(files)},
               {"bytes", body.size()},
               {"sha256", Hex(Sha256Of(body))}};
  if (segment.schema_is_later) head["schema_is_later"] = true;
  return WithChecksumLine(TextOf(head)) + Pack(body);
}

absl::StatusOr<LogSegment> DecodeSegment(std::string_view bytes, std::string_view blob) {
  const size_t first = bytes.find('\n');
  const size_t second = first == std::string_view::npos ? first : bytes.find('\n', first + 1);
  if (second == std::string_view::npos) return Damaged(blob, "it is cut off: its second line is missing");
  const auto line = CheckedLine(bytes.substr(0, second + 1));
  if (!line.ok()) return Damaged(blob, std::string(line.status().message()));
  const auto json = ParseJson(*line);
  if (!json.ok()) return Damaged(blob, std::string(json.status().message()));
  JsonFields fields(*json, "");
  if (const uint64_t format = fields.Uint("format", 1, kMaxMs); format > kFormat) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a newer version of KVStore wrote it: format {}, and this one knows {}; use that "
                    "version",
                    blob, format, kFormat));
  }
  LogSegment segment{.chain = fields.String("chain"),
                     .number = fields.Uint("number", 1, kMaxMs),
                     .previous = fields.String("previous"),
                     .after = fields.Uint("after", 0, UINT64_MAX),
                     .last = fields.Uint("last", 0, UINT64_MAX),
                     .marks = {},
                     .schema = {},
                     .schema_is_later = fields.OptionalBool("schema_is_later").value_or(false),
                     .writes = {}};
  if (SegmentBlob(segment.chain, segment.number) != blob) fields.Fail("chain", "is not that of its name");
  ReadMarks(fields, segment);
  ReadSchema(fields, segment.schema);
  const uint64_t size = fields.Uint("bytes", 0, kMaxBodyBytes);
  const std::string sha256 = fields.String("sha256");
  // A later version may add fields that this one need not know.
  if (json->is_object()) {
    for (const auto& field : json->items()) fields.Find(field.key());
  }
  if (auto status = fields.Finish(); !status.ok()) return Damaged(blob, std::string(status.message()));
  const std::string_view packed = bytes.substr(second + 1);
  std::string body(size, '\0');
  if (ZSTD_decompress(body.data(), body.size(), packed.data(), packed.size()) != body.size() ||
      Hex(Sha256Of(body)) != sha256) {
    return Damaged(blob, "its writes do not have the checksum of its first line");
  }
  if (auto status = ReadWrites(body, blob, segment); !status.ok()) return status;
  return segment;
}

}  // namespace kvstore::backup
