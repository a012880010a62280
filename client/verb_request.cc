#include "client/verb_request.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

#include "json/json_text.h"

namespace kvstore::client {
namespace {

using google::protobuf::FieldDescriptor;

/// Sets a field of a message, or of the options of a verb. Returns false if there is none that could have
/// this value.
bool SetField(google::protobuf::Message& message, const std::string& name, const Json& value) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) return false;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (value.is_string() && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(&message, field, value.get<std::string>());
  } else if (value.is_boolean() && field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    reflection.SetBool(&message, field, value.get<bool>());
  } else if (value.is_number_unsigned() && field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    reflection.SetUInt64(&message, field, value.get<uint64_t>());
  } else {
    return false;
  }
  return true;
}

/// Returns whether the request can have the command as its verb, and sets it. Options that are no part of the
/// verb, "who" and "dry_run", are set beside it.
bool SetVerb(const Json& command, google::protobuf::Message& request) {
  const FieldDescriptor* const verb = request.GetDescriptor()->FindFieldByName(command.value("command", ""));
  if (verb == nullptr || verb->real_containing_oneof() == nullptr) return false;
  google::protobuf::Message& options = *request.GetReflection()->MutableMessage(&request, verb);
  for (const auto& [key, value] : command.items()) {
    if (key == "command") continue;
    const bool of_all = key == "who" || key == "dry_run";
    if (!SetField(of_all ? request : options, key, value)) return false;
  }
  return true;
}

}  // namespace

v1::MigrateRequest MigrateRequestOf(const Json& command) {
  v1::MigrateRequest request;
  Json without_dataset = command;
  without_dataset.erase("dataset");
  if (!SetVerb(without_dataset, request)) request.Clear();
  const std::string dataset = command.value("dataset", "");
  request.set_dataset(dataset.empty() ? "*" : dataset);
  request.set_command(TextOf(command));
  return request;
}

absl::StatusOr<v1::OperateShardsRequest> OperateShardsRequestOf(const Json& command) {
  v1::OperateShardsRequest request;
  if (SetVerb(command, request)) return request;
  return absl::InvalidArgumentError(
      fmt::format("command: '{}' is none that a server carries out, or has no such options: {}",
                  command.value("command", ""), TextOf(command)));
}

}  // namespace kvstore::client
