#include "assembly/remote_type.h"

#include "assembly/backend_opener.h"
#include "assembly/backend_reader.h"
#include "assembly/config_fields.h"
#include "backends/remote/backend.h"

namespace kvstore {
namespace {

std::any ReadRemote(BackendReader& reader) {
  JsonFields& fields = reader.fields();
  const std::filesystem::path& folder = reader.context().folder;
  RemoteServer remote;
  remote.address = fields.String("address");
  remote.options.token = ReadSecret(fields, "token", folder);
  remote.options.plain_token = fields.OptionalBool("plain_token").value_or(false);
  ReadUint(fields, "connections", 1, 64, remote.options.connections);
  ReadUint(fields, "deadline_ms", 1, 3'600'000, remote.options.deadline_ms);
  remote.options.tls = ReadClientTls(fields, folder);
  return remote;
}

absl::StatusOr<std::unique_ptr<Backend>> OpenRemote(BackendOpener& opener) {
  auto remote = opener.OptionsAs<RemoteServer>();
  if (!remote.ok()) return remote.status();
  // A server that shares this catalog refuses calls on datasets that are elsewhere by its own view of it.
  if (opener.context().options.coordination) remote->options.backend = opener.backend().name;
  return RemoteBackend::Connect(remote->address, remote->options);
}

}  // namespace

BackendType RemoteType() { return {.name = kRemote, .read = ReadRemote, .open = OpenRemote}; }

}  // namespace kvstore
