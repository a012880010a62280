#include "server/health.h"

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string_view>
#include <utility>

namespace kvstore::server {
namespace {

using Bytes = grpc::ByteBuffer;

/// HealthCheckResponse: field 1, SERVING or NOT_SERVING.
constexpr std::string_view kServing = "\x08\x01";
constexpr std::string_view kNotServing = "\x08\x02";

class Answer final : public grpc::ServerBidiReactor<Bytes, Bytes> {
 public:
  Answer(std::string_view text, BriefCalls& open, grpc::CallbackServerContext& context)
      : open_(open), context_(context), entered_(open.Enter(context)) {
    // Without an answer, which the client could leave untaken.
    if (!entered_) {
      Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many ask at a time"});
      return;
    }
    const grpc::Slice slice(text.data(), text.size());
    answer_ = Bytes(&slice, 1);
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }

 private:
  void OnDone() override {
    if (entered_) open_.Leave(context_);
    delete this;
  }

  BriefCalls& open_;
  grpc::CallbackServerContext& context_;
  const bool entered_;
  Bytes answer_;
};

}  // namespace

HealthService::HealthService(std::function<bool()> serves, BriefCalls& open) {
  AddMethod(new grpc::internal::RpcServiceMethod("/grpc.health.v1.Health/Check",
                                                 grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodCallback(0, new grpc::internal::CallbackBidiHandler<Bytes, Bytes>(
                            [serves = std::move(serves), &open](grpc::CallbackServerContext* context) {
                              return new Answer(serves() ? kServing : kNotServing, open, *context);
                            }));
}

}  // namespace kvstore::server
