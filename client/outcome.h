#pragma once

#include <grpcpp/client_context.h>

#include <string>

namespace kvstore::client {

/// Returns what the server says that its error has left behind ("kvstore-outcome" in kvstore.proto); empty if
/// the error is not the server's, because the call was lost on the way.
std::string OutcomeOf(const grpc::ClientContext& context);

}  // namespace kvstore::client
