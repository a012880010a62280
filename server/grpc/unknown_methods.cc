#include "server/grpc/unknown_methods.h"

#include "server/grpc/grpc_transport.h"

namespace kvstore::server {
namespace {

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  Refusal() { Finish({grpc::StatusCode::UNIMPLEMENTED, ""}); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(grpc::GenericCallbackServerContext* context) {
  const GrpcTransport transport(*context);
  // A newer client asks an older server for methods, too.
  if (core_.access->Identify(transport.Authorization(), transport.CommonName()).ok()) {
    core_.connections.KnownCalled(transport.Peer());
  } else {
    core_.connections.StrangerCalled(transport.Peer());
  }
  return new Refusal;
}

}  // namespace kvstore::server
