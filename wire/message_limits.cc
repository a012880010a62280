#include "wire/message_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "kvstore/v1/endpoint.pb.h"
#include "kvstore/v1/reports.pb.h"
#include "kvstore_api/limits.h"
#include "wire/calls.h"

namespace kvstore::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBytes = 2;
constexpr uint32_t kFixed32 = 5;

/// Our messages have no more fields than this. Entries of fields after them are only counted in the total.
constexpr int kCountedFields = 32;

/// The most entries that a list may have.
size_t LimitOf(const FieldDescriptor& field) {
  if (field.file() == v1::EndpointRequest::descriptor()->file()) return kMaxEndpointEntries;
  const std::string& name = field.name();
  if (name == "calls") return kMaxCallsOfMessage;
  if (name == "writes" || name == "deletes" || name == "reads" || name == "ids") return kMaxBatchRows;
  return kMaxPageCells;
}

/// Counts the entries of an encoded message without parsing it.
class Counter {
 public:
  Counter(const Descriptor& type, std::string_view bytes)
      : at_(bytes.data()),
        most_(&type == v1::EndpointRequest::descriptor() ? kMaxEndpointEntries : kMaxEntries) {}

  /// Counts the entries before `end`. Returns false if it has to stop: the bytes are not a message, or have
  /// too many.
  bool Count(const Descriptor& type, const char* end) {
    std::array<uint32_t, kCountedFields> counts{};
    while (at_ < end) {
      uint64_t tag = 0;
      if (!Varint(end, tag)) return false;
      const FieldDescriptor* field = type.FindFieldByNumber(static_cast<int>(tag >> 3));
      const char* inner = nullptr;
      if (!Skip(tag & 7, end, inner)) return false;
      const bool listed = field == nullptr || field->is_repeated();
      if (listed) {
        const size_t more =
            field != nullptr && inner != nullptr && field->is_packable() ? Packed(*field, inner) : 1;
        if (field != nullptr && field->index() < kCountedFields && !AddTo(counts, *field, more)) return false;
        if ((total_ += Weight(field, more)) > most_) return TooMany("the message", most_);
      }
      if (field == nullptr || inner == nullptr || field->message_type() == nullptr) continue;
      const char* behind = at_;
      at_ = inner;
      if (!Count(*field->message_type(), behind)) return false;
    }
    return true;
  }

  size_t total() const { return total_; }
  const absl::Status& status() const { return status_; }

 private:
  bool Varint(const char* end, uint64_t& value) {
    value = 0;
    for (int shift = 0; at_ < end && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  /// Moves past the value of a field; sets `inner` to where its bytes begin, if it has a length.
  bool Skip(uint64_t kind, const char* end, const char*& inner) {
    uint64_t size = 0;
    switch (kind) {
      case kVarint:
        return Varint(end, size);
      case kFixed64:
        size = 8;
        break;
      case kFixed32:
        size = 4;
        break;
      case kBytes:
        if (!Varint(end, size)) return false;
        inner = at_;
        break;
      default:
        return false;  // our messages have no groups
    }
    if (size > static_cast<size_t>(end - at_)) return false;
    at_ += size;
    return true;
  }

  /// The number of entries in the packed list from `inner` to here.
  size_t Packed(const FieldDescriptor& field, const char* inner) const {
    switch (field.type()) {
      case FieldDescriptor::TYPE_FIXED64:
      case FieldDescriptor::TYPE_SFIXED64:
      case FieldDescriptor::TYPE_DOUBLE:
        return static_cast<size_t>(at_ - inner) / 8;
      case FieldDescriptor::TYPE_FIXED32:
      case FieldDescriptor::TYPE_SFIXED32:
      case FieldDescriptor::TYPE_FLOAT:
        return static_cast<size_t>(at_ - inner) / 4;
      default:
        return static_cast<size_t>(
            std::count_if(inner, at_, [](char c) { return static_cast<uint8_t>(c) < 0x80; }));
    }
  }

  /// Returns as how many entries so many of a list count in the total. The columns of reports are numbers,
  /// of which nothing larger is built.
  static size_t Weight(const FieldDescriptor* field, size_t entries) {
    const bool column = field != nullptr && field->is_packable() &&
                        field->file() == v1::WritePointsRequest::descriptor()->file();
    return column ? (entries + kNumbersOfEntry - 1) / kNumbersOfEntry : entries;
  }

  bool AddTo(std::array<uint32_t, kCountedFields>& counts, const FieldDescriptor& field, size_t more) {
    uint32_t& count = counts[static_cast<size_t>(field.index())];
    const bool low = count + more <= kMaxCallsOfMessage;
    count += static_cast<uint32_t>(more);
    // Below the lowest limit of all there is no need to know which one applies.
    if (low || count <= LimitOf(field)) return true;
    return TooMany(field.name(), LimitOf(field));
  }

  bool TooMany(std::string_view what, size_t most) {
    status_ = absl::InvalidArgumentError(fmt::format("{}: more than {} entries in one message", what, most));
    return false;
  }

  const char* at_;
  const size_t most_;
  size_t total_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<size_t> CountEntries(const Descriptor& type, std::string_view bytes) {
  Counter counter(type, bytes);
  counter.Count(type, bytes.data() + bytes.size());
  if (!counter.status().ok()) return counter.status();
  return counter.total();
}

}  // namespace kvstore::wire
