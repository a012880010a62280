#include "server/grpc/waker.h"

namespace kvstore::server {

Waker::~Waker() {
  if (call_) call_->ended.WaitForNotification();
}

void Waker::Wake() {
  if (call_ && !call_->ended.HasBeenNotified()) return;
  call_ = std::make_unique<Call>();
  stub_.UnaryCall(&call_->context, "/none", grpc::StubOptions(), &call_->request, &call_->response,
                  [call = call_.get()](const grpc::Status&) { call->ended.Notify(); });
}

}  // namespace kvstore::server
