#pragma once

#include <google/protobuf/message.h>

#include <string_view>

#include "absl/status/statusor.h"
#include "json/json.h"
#include "kvstore/v1/kvstore.pb.h"

/// Requests whose `verb` is one of many messages, as commands in JSON: {"command": VERB, ...options}.
namespace kvstore::server {

/// Returns the command of the message that is set in the oneof `verb` of a request: its name, and those of
/// its options that are set. An empty object if none is set.
Json CommandOfVerb(const google::protobuf::Message& request);

/// Returns whether a request, or its verb, has fields that this version does not know.
bool HasUnknownFields(const google::protobuf::Message& request);

/// Returns the command of a request in the form of Migrations::Command: the one that its `verb` is, or,
/// without one, its text in JSON. INVALID_ARGUMENT if it has neither, or the text is no JSON object.
absl::StatusOr<Json> MigrateCommandOf(const v1::MigrateRequest& request);

}  // namespace kvstore::server
