#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "wire/message_limits.h"

namespace kvstore::server {

/// A request as gRPC hands it over: counted on its bytes before anything is built from them, and with what is
/// wrong with it, which gRPC would tell as UNIMPLEMENTED, or as the end of a stream.
template <typename Message>
struct Incoming {
  Message message;
  /// INVALID_ARGUMENT: it is no such message, or has more entries than it may. Then `message` is empty, or
  /// has a part of it.
  absl::Status status;
  /// What it takes in memory, about, in bytes.
  size_t memory = 0;
};

/// What a call is told whose request is missing.
inline absl::Status NoRequest() {
  return absl::InvalidArgumentError("the call has no request, or it did not come as a whole");
}

/// Smaller messages are not counted: what can be built from them is no more than some megabytes, and counting
/// takes time.
inline constexpr size_t kMinCountedBytes = size_t{32} << 10;

}  // namespace kvstore::server

namespace grpc {

/// Makes gRPC read requests in this way.
template <typename Message>
class SerializationTraits<kvstore::server::Incoming<Message>> {
 public:
  static Status Deserialize(ByteBuffer* buffer, kvstore::server::Incoming<Message>* incoming) {
    const size_t size = buffer->Length();
    incoming->status = absl::OkStatus();
    incoming->memory = size;
    bool parsed = false;
    if (size < kvstore::server::kMinCountedBytes) {
      parsed = SerializationTraits<Message>::Deserialize(buffer, &incoming->message).ok();
    } else {
      Slice slice;
      if (!buffer->DumpToSingleSlice(&slice).ok()) return {StatusCode::INTERNAL, "a message cannot be read"};
      buffer->Clear();
      const std::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
      const auto entries = kvstore::wire::CountEntries(*Message::descriptor(), bytes);
      if (!entries.ok()) {
        incoming->message.Clear();
        incoming->status = entries.status();
        return Status::OK;
      }
      incoming->memory += *entries * kvstore::wire::kEntryBytes;
      parsed = incoming->message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    }
    if (!parsed) {
      incoming->status = absl::InvalidArgumentError(
          "the message cannot be decoded: it is cut short, or has a name that is not UTF-8");
    }
    return Status::OK;
  }
};

}  // namespace grpc
