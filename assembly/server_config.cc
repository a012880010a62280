#include "assembly/server_config.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "assembly/config_fields.h"

namespace kvstore {
namespace {

void ReadLimits(JsonFields& fields, ServerLimits& limits) {
  ReadUint(fields, "max_calls", 1, 1'000'000, limits.max_calls);
  ReadUint(fields, "max_bytes", size_t{32} << 20, uint64_t{1} << 40, limits.max_bytes);
  ReadUint(fields, "threads", 1, 1'000, limits.threads);
  ReadUint(fields, "report_threads", 1, 1'000, limits.report_threads);
  ReadUint(fields, "query_bytes", size_t{1} << 20, uint64_t{1} << 40, limits.query_bytes);
  ReadUint(fields, "call_ms", 1, 86'400'000, limits.call_ms);
  ReadUint(fields, "stall_ms", 100, 86'400'000, limits.stall_ms);
  ReadUint(fields, "idle_ms", 0, 86'400'000, limits.idle_ms);
  ReadUint(fields, "drain_ms", 0, 86'400'000, limits.drain_ms);
  ReadUint(fields, "remembered", 0, 10'000'000, limits.remembered);
  ReadUint(fields, "remember_ms", 0, 86'400'000, limits.remember_ms);
}

void ReadListen(JsonFields& fields, ServerOptions& server) {
  if (fields.Find("listen") == nullptr) return;
  server.listen.clear();
  const auto& list = fields.Array("listen");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string()) {
      server.listen.push_back(list[i].get<std::string>());
    } else {
      fields.Fail(fmt::format("listen[{}]", i), "must be a string: \"host:port\" or \"unix:/path\"");
    }
  }
  if (list.empty()) fields.Fail("listen", "must name an address");
}

void ReadOrigins(JsonFields& fields, ServerOptions& server) {
  if (fields.Find("http_origins") == nullptr) return;
  const auto& list = fields.Array("http_origins");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string()) {
      server.http_origins.push_back(list[i].get<std::string>());
    } else {
      fields.Fail(fmt::format("http_origins[{}]", i), "must be a string: \"https://host\", or \"*\"");
    }
  }
}

}  // namespace

void ReadServerOptions(JsonFields& fields, const std::filesystem::path& folder, ServerOptions& server) {
  ReadListen(fields, server);
  server.http = fields.OptionalString("http").value_or("");
  server.http_open = fields.OptionalBool("http_open").value_or(false);
  server.resp = fields.OptionalString("resp").value_or("");
  server.http_api = fields.OptionalString("http_api").value_or("");
  ReadOrigins(fields, server);
  server.tokens = PathIn(fields, "tokens", folder);
  server.insecure = fields.OptionalBool("insecure").value_or(false);
  ReadUint(fields, "slow_ms", 0, 86'400'000, server.slow_ms);
  OptionalObject(fields, "tls", [&](JsonFields& tls) {
    server.tls.cert = folder / tls.String("cert");
    server.tls.key = folder / tls.String("key");
    server.tls.client_ca = PathIn(tls, "client_ca", folder);
  });
  OptionalObject(fields, "limits", [&](JsonFields& limits) { ReadLimits(limits, server.limits); });
  OptionalObject(fields, "reports", [&](JsonFields& reports) {
    server.reports.dataset = reports.OptionalString("dataset").value_or(server.reports.dataset);
    ReadUint(reports, "maintain_ms", 0, 86'400'000, server.reports.maintain_ms);
    ReadUint(reports, "share", 1, 100, server.reports.share);
    ReadUint(reports, "quiet_ms", 0, 86'400'000, server.reports.quiet_ms);
  });
}

}  // namespace kvstore
