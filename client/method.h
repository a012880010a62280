#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <string_view>

#include "kvstore/v1/kvstore.grpc.pb.h"
#include "kvstore/v1/reports.grpc.pb.h"
#include "kvstore/v1/shards.grpc.pb.h"

/// How a request is sent, by the table of operations.
namespace kvstore::client {

/// A write has a place for its request ID, by which the server knows a retry.
template <typename Request>
concept Writes = requires(Request& request) {
  request.mutable_attempt();
};

/// right  A right of the table, by its name.
constexpr bool IsRightToWrite(std::string_view right) { return right == "kWrite" || right == "kAdmin"; }

/// The method that a request is for, if it has one answer.
///
///   Response               its answer
///   Call(stub, ...)        calls it on the stub of its service, and on no other
template <typename Request>
struct Method;

#define KV_UNARY(name, right, quick)                                                             \
  template <>                                                                                    \
  struct Method<v1::name##Request> {                                                             \
    using Response = v1::name##Response;                                                         \
    static_assert(Writes<v1::name##Request> == IsRightToWrite(#right),                           \
                  #name " needs a right to write, and its request an attempt, or neither");      \
    template <typename Stub>                                                                     \
    static auto Call(Stub& stub, grpc::ClientContext* context, const v1::name##Request& request, \
                     Response* response) -> decltype(stub.name(context, request, response)) {    \
      return stub.name(context, request, response);                                              \
    }                                                                                            \
  };
#include "backend_api/operations.def"

template <typename Request>
using ResponseOf = typename Method<Request>::Response;

}  // namespace kvstore::client
