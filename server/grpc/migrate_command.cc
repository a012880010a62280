#include "server/grpc/migrate_command.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace kvstore::server {
namespace {

using google::protobuf::FieldDescriptor;

Json ValueOf(const google::protobuf::Message& message, const FieldDescriptor& field) {
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

absl::StatusOr<Json> MigrateCommandOf(const v1::MigrateRequest& request) {
  const auto* const verbs = v1::MigrateRequest::descriptor()->FindOneofByName("verb");
  const FieldDescriptor* const verb = request.GetReflection()->GetOneofFieldDescriptor(request, verbs);
  if (verb == nullptr) {
    if (request.command().empty())
      return absl::InvalidArgumentError("verb: missing; the request says nothing to do");
    auto command = ParseJson(request.command());
    if (command.ok() && !command->is_object())
      return absl::InvalidArgumentError("command: must be a JSON object");
    return command;
  }
  Json command = {{"command", verb->name()}};
  if (!request.who().empty()) command["who"] = request.who();
  if (request.dry_run()) command["dry_run"] = true;
  const auto& options = request.GetReflection()->GetMessage(request, verb);
  std::vector<const FieldDescriptor*> given;
  options.GetReflection()->ListFields(options, &given);
  for (const FieldDescriptor* field : given) command[field->name()] = ValueOf(options, *field);
  return command;
}

}  // namespace kvstore::server
