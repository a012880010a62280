#pragma once

#include "kvstore/v1/kvstore.pb.h"

/// The requests that may be multiplexed on a stream, and their fields in its messages.
namespace kvstore::wire {

/// So many calls may be in one message, since a server allocates memory for each before it knows who calls.
inline constexpr int kMaxCallsOfMessage = 1'000;

/// The fields of a request, and of its response, in the messages of the stream.
///
///   Lend(request, call)   makes it the request of a call, without copying it
///   TakeBack(call)        ends that; to be done before either of them ends
///   In(answer)            its response
template <typename Request>
struct CallKind;

#define KV_MULTIPLEXED(name, right, quick, field)                                           \
  template <>                                                                               \
  struct CallKind<v1::name##Request> {                                                      \
    static void Lend(v1::name##Request& request, v1::Call& call) {                          \
      call.unsafe_arena_set_allocated_##field(&request);                                    \
    }                                                                                       \
    static void TakeBack(v1::Call& call) { call.unsafe_arena_release_##field(); }           \
    static v1::name##Response& In(v1::Answer& answer) { return *answer.mutable_##field(); } \
  };
#include "backend_api/operations.def"

template <typename Request>
concept Streamed = requires(v1::Call& call) {
  CallKind<Request>::TakeBack(call);
};

}  // namespace kvstore::wire
