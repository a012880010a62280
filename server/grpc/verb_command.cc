#include "server/grpc/verb_command.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace kvstore::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Returns the message that is set in the oneof `verb`; null if none is.
const FieldDescriptor* VerbOf(const Message& request) {
  const auto* const verbs = request.GetDescriptor()->FindOneofByName("verb");
  return request.GetReflection()->GetOneofFieldDescriptor(request, verbs);
}

Json ValueOf(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.GetUInt64(message, &field);
    default:
      return reflection.GetString(message, &field);
  }
}

}  // namespace

Json CommandOfVerb(const Message& request) {
  const FieldDescriptor* const verb = VerbOf(request);
  if (verb == nullptr) return Json::object();
  Json command = {{"command", verb->name()}};
  const Message& options = request.GetReflection()->GetMessage(request, verb);
  std::vector<const FieldDescriptor*> given;
  options.GetReflection()->ListFields(options, &given);
  for (const FieldDescriptor* field : given) command[field->name()] = ValueOf(options, *field);
  return command;
}

bool HasUnknownFields(const Message& request) {
  const auto has_some = [](const Message& message) {
    return !message.GetReflection()->GetUnknownFields(message).empty();
  };
  if (has_some(request)) return true;
  const FieldDescriptor* const verb = VerbOf(request);
  return verb != nullptr && has_some(request.GetReflection()->GetMessage(request, verb));
}

absl::StatusOr<Json> MigrateCommandOf(const v1::MigrateRequest& request) {
  Json command = CommandOfVerb(request);
  if (command.empty()) {
    if (request.command().empty())
      return absl::InvalidArgumentError("verb: missing; the request says nothing to do");
    auto text = ParseJson(request.command());
    if (text.ok() && !text->is_object()) return absl::InvalidArgumentError("command: must be a JSON object");
    return text;
  }
  if (!request.who().empty()) command["who"] = request.who();
  if (request.dry_run()) command["dry_run"] = true;
  return command;
}

}  // namespace kvstore::server
