#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kvstore::testing {

/// Makes a channel that shares its connection with no other.
inline std::shared_ptr<grpc::Channel> OwnChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

inline grpc::ByteBuffer BytesOf(std::string_view text) {
  const grpc::Slice slice(text.data(), text.size());
  return {&slice, 1};
}

/// Makes a call of any method with any bytes as its request, as a hostile client does.
///
/// token  Empty: none is sent.
inline grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            std::string_view request, const std::string& token = "",
                            grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  context.set_compression_algorithm(compression);
  context.set_wait_for_ready(true);
  const auto call = stub.PrepareUnaryCall(&context, method, BytesOf(request), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

/// Opens a call of any method, sends nothing, and returns how the server ends it.
inline grpc::Status OpenRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                            const std::string& token = "") {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  const auto call = stub.PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  // The status comes after the answers.
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

/// Returns the same bytes so many times.
inline std::string Repeated(std::string_view bytes, size_t count) {
  std::string text;
  text.reserve(bytes.size() * count);
  for (size_t i = 0; i < count; ++i) text += bytes;
  return text;
}

/// Returns a length-delimited field of a protobuf message, as it is on the wire.
inline std::string Field(int number, std::string_view bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  uint64_t size = bytes.size();
  for (; size > 127; size >>= 7) text += static_cast<char>(size | 128);
  text += static_cast<char>(size);
  return text.append(bytes);
}

}  // namespace kvstore::testing
