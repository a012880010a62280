#pragma once

#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <utility>

#include "server/grpc/incoming.h"

namespace kvstore::server {

/// The beginning of a call with one request and one answer: its request, which is not read yet, and the call
/// to read it from.
template <typename Request>
struct Opening {
  grpc::internal::Call call;
  Incoming<Request> incoming;
};

/// Starts calls with one request and one answer that read their request themselves. gRPC's own handler for
/// them reads the request of anybody before it starts the call. Its handler for streams does not; but it has
/// another thread end each call, which takes a tenth of the server's time where calls are short.
///
/// It is made of parts that gRPC 1.51 calls internal, like the class that it is derived from.
template <typename Request, typename Response>
class UnaryHandler : public grpc::internal::MethodHandler {
 public:
  /// Starts a call; many threads call it at once. Its arguments live until its reactor's OnDone has returned.
  /// gRPC does not delete the reactor.
  using Starter =
      std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext&, Opening<Request>&, Response&)>;

  explicit UnaryHandler(Starter start)
      : handler_([start = std::move(start)](grpc::CallbackServerContext* context,
                                            const Opening<Request>* opening, Response* response) {
          // The handler makes no use of the request, which is const for others.
          return start(*context, const_cast<Opening<Request>&>(*opening), *response);
        }) {}

  void RunHandler(const HandlerParameter& given) override {
    // The handler takes its address from a void*, so that it must be that of the base class.
    grpc::MessageHolder<Opening<Request>, Response>* messages = new Messages(*given.call);
    handler_.RunHandler(
        {given.call, given.server_context, given.request, given.status, messages, given.call_requester});
  }

 private:
  class Messages final : public grpc::MessageHolder<Opening<Request>, Response> {
   public:
    explicit Messages(const grpc::internal::Call& call) {
      opening_.call = call;
      this->set_request(&opening_);
      this->set_response(&response_);
    }
    void Release() override { delete this; }

   private:
    Opening<Request> opening_;
    Response response_;
  };

  grpc::internal::CallbackUnaryHandler<Opening<Request>, Response> handler_;
};

}  // namespace kvstore::server

namespace grpc {

/// No opening is read from the wire: UnaryHandler's methods are registered as streams, whose handlers get no
/// message.
template <typename Request>
class SerializationTraits<kvstore::server::Opening<Request>> {
 public:
  static Status Deserialize(ByteBuffer* /*buffer*/, kvstore::server::Opening<Request>* /*opening*/) {
    return {StatusCode::INTERNAL, "a request was read before its call has begun"};
  }
};

}  // namespace grpc
