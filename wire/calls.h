#pragma once

#include "kvstore/v1/kvstore.pb.h"

/// The requests that may go over a stream with others, and their places in its messages.
namespace kvstore::wire {

/// In one message: what a server makes of each takes memory before it knows who asks.
inline constexpr int kMaxCallsOfMessage = 1'000;

template <typename Request>
struct CallKind;

template <>
struct CallKind<v1::GetRowRequest> {
  static v1::GetRowRequest& In(v1::Call& call) { return *call.mutable_get_row(); }
  static v1::GetRowResponse& In(v1::Answer& answer) { return *answer.mutable_get_row(); }
};
template <>
struct CallKind<v1::PutRowRequest> {
  static v1::PutRowRequest& In(v1::Call& call) { return *call.mutable_put_row(); }
  static v1::PutRowResponse& In(v1::Answer& answer) { return *answer.mutable_put_row(); }
};
template <>
struct CallKind<v1::DeleteRowRequest> {
  static v1::DeleteRowRequest& In(v1::Call& call) { return *call.mutable_delete_row(); }
  static v1::DeleteRowResponse& In(v1::Answer& answer) { return *answer.mutable_delete_row(); }
};
template <>
struct CallKind<v1::CreateObjectRequest> {
  static v1::CreateObjectRequest& In(v1::Call& call) { return *call.mutable_create_object(); }
  static v1::CreateObjectResponse& In(v1::Answer& answer) { return *answer.mutable_create_object(); }
};
template <>
struct CallKind<v1::GetObjectRequest> {
  static v1::GetObjectRequest& In(v1::Call& call) { return *call.mutable_get_object(); }
  static v1::GetObjectResponse& In(v1::Answer& answer) { return *answer.mutable_get_object(); }
};
template <>
struct CallKind<v1::UpdateObjectRequest> {
  static v1::UpdateObjectRequest& In(v1::Call& call) { return *call.mutable_update_object(); }
  static v1::UpdateObjectResponse& In(v1::Answer& answer) { return *answer.mutable_update_object(); }
};
template <>
struct CallKind<v1::DeleteObjectRequest> {
  static v1::DeleteObjectRequest& In(v1::Call& call) { return *call.mutable_delete_object(); }
  static v1::DeleteObjectResponse& In(v1::Answer& answer) { return *answer.mutable_delete_object(); }
};
template <>
struct CallKind<v1::AddMappingRequest> {
  static v1::AddMappingRequest& In(v1::Call& call) { return *call.mutable_add_mapping(); }
  static v1::AddMappingResponse& In(v1::Answer& answer) { return *answer.mutable_add_mapping(); }
};
template <>
struct CallKind<v1::RemoveMappingRequest> {
  static v1::RemoveMappingRequest& In(v1::Call& call) { return *call.mutable_remove_mapping(); }
  static v1::RemoveMappingResponse& In(v1::Answer& answer) { return *answer.mutable_remove_mapping(); }
};
template <>
struct CallKind<v1::ListMappingRequest> {
  static v1::ListMappingRequest& In(v1::Call& call) { return *call.mutable_list_mapping(); }
  static v1::ListMappingResponse& In(v1::Answer& answer) { return *answer.mutable_list_mapping(); }
};
template <>
struct CallKind<v1::CountMappingRequest> {
  static v1::CountMappingRequest& In(v1::Call& call) { return *call.mutable_count_mapping(); }
  static v1::CountMappingResponse& In(v1::Answer& answer) { return *answer.mutable_count_mapping(); }
};

template <typename Request>
concept Streamed = requires(v1::Call& call) {
  CallKind<Request>::In(call);
};

}  // namespace kvstore::wire
