#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "wire/message_limits.h"

namespace kvstore::server {

/// A request as it is read from gRPC. Its entries are counted on the bytes before anything is built from
/// them. A message with mistakes is read, too, with its error in `status`: gRPC itself would end the call
/// with UNIMPLEMENTED, or the stream without a reason.
template <typename Message>
struct Incoming {
  Message message;
  /// INVALID_ARGUMENT if the bytes are no such message, or have more entries than are allowed. Then `message`
  /// is empty, or has a part of them.
  absl::Status status;
  RequestSize size;
};

/// Returns the error of a call whose request is missing.
inline absl::Status MissingRequestError() {
  return absl::InvalidArgumentError("the call has no request, or it did not come as a whole");
}

/// Counting takes time, so entries of smaller messages are not counted: kBareMessageBytes stands for them.
inline constexpr size_t kMinCountedBytes = 128;
/// The memory that a message takes beside its bytes and the entries that are counted. Measured with protobuf
/// 3.21 and glibc: an entry of two bytes takes 56 to 88 bytes, so that those of 128 bytes take at most 5 KB;
/// one with parts takes 168 (a cell with name and value) to 216 (a read with options), of 6 to 8 bytes.
inline constexpr size_t kBareMessageBytes = size_t{4} << 10;

}  // namespace kvstore::server

namespace grpc {

/// Has gRPC read requests into Incoming.
template <typename Message>
class SerializationTraits<kvstore::server::Incoming<Message>> {
 public:
  static Status Deserialize(ByteBuffer* buffer, kvstore::server::Incoming<Message>* incoming) {
    const size_t size = buffer->Length();
    incoming->status = absl::OkStatus();
    incoming->size = {.bytes = size, .memory = size + kvstore::server::kBareMessageBytes};
    // Nearly every message is one slice, which is parsed where it is.
    Slice slice;
    if (!buffer->DumpToSingleSlice(&slice).ok()) return {StatusCode::INTERNAL, "a message cannot be read"};
    buffer->Clear();
    const std::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
    if (size >= kvstore::server::kMinCountedBytes) {
      const auto entries = kvstore::wire::CountEntries(*Message::descriptor(), bytes);
      if (!entries.ok()) {
        incoming->message.Clear();
        incoming->status = entries.status();
        return Status::OK;
      }
      incoming->size.memory += *entries * kvstore::wire::kEntryBytes;
    }
    if (!incoming->message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      incoming->status = absl::InvalidArgumentError(
          "the message cannot be decoded: it is cut short, or has a name that is not UTF-8");
    }
    return Status::OK;
  }
};

}  // namespace grpc
