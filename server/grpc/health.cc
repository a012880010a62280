#include "server/grpc/health.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string_view>
#include <utility>

#include "server/grpc/grpc_transport.h"

namespace kvstore::server {
namespace {

using Bytes = grpc::ByteBuffer;

/// HealthCheckResponse: field 1, SERVING or NOT_SERVING.
constexpr std::string_view kServing = "\x08\x01";
constexpr std::string_view kNotServing = "\x08\x02";

class HealthAnswer final : public grpc::ServerBidiReactor<Bytes, Bytes> {
 public:
  HealthAnswer(std::string_view text, BriefCalls& open, grpc::CallbackServerContext& context)
      : open_(open), transport_(context), admitted_(open.Admit(transport_)) {
    // Ends without a message, which the client could leave untaken.
    if (!admitted_) {
      Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "there are too many health checks at a time"});
      return;
    }
    const grpc::Slice slice(text.data(), text.size());
    answer_ = Bytes(&slice, 1);
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }

 private:
  void OnDone() override {
    if (admitted_) open_.Release(transport_);
    delete this;
  }

  BriefCalls& open_;
  GrpcTransport transport_;
  const bool admitted_;
  Bytes answer_;
};

}  // namespace

HealthService::HealthService(std::function<bool()> serves,
                             std::function<void(const std::string& peer)> called, BriefCalls& open) {
  AddMethod(new grpc::internal::RpcServiceMethod("/grpc.health.v1.Health/Check",
                                                 grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodCallback(0, new grpc::internal::CallbackBidiHandler<Bytes, Bytes>(
                            [serves = std::move(serves), called = std::move(called),
                             &open](grpc::CallbackServerContext* context) {
                              called(context->peer());
                              return new HealthAnswer(serves() ? kServing : kNotServing, open, *context);
                            }));
}

}  // namespace kvstore::server
