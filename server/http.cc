#include "server/http.h"

#include <civetweb.h>
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace kvstore::server {
namespace {

int Answer(mg_connection* connection, int code, std::string_view type, std::string_view body) {
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %.*s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", code,
            code == 200 ? "OK" : "Service Unavailable", static_cast<int>(type.size()), type.data(),
            body.size());
  mg_write(connection, body.data(), body.size());
  return code;
}

int OnMetrics(mg_connection* connection, void* pages) {
  return Answer(connection, 200, "text/plain; version=0.0.4; charset=utf-8",
                static_cast<const HttpServer::Pages*>(pages)->metrics());
}

int OnHealth(mg_connection* connection, void*) { return Answer(connection, 200, "text/plain", "ok\n"); }

int OnReady(mg_connection* connection, void* pages) {
  const bool ready = static_cast<const HttpServer::Pages*>(pages)->ready();
  return Answer(connection, ready ? 200 : 503, "text/plain", ready ? "ok\n" : "not ready\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Pages pages) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(pages)));
  // Many threads, which only wait, and short patience: it takes many who are slow to keep others out, and
  // they do not for long.
  const char* options[] = {"listening_ports",
                           address.c_str(),
                           "num_threads",
                           "64",
                           "request_timeout_ms",
                           "1000",
                           "enable_keep_alive",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  // Its own messages go nowhere: that it cannot listen is told below.
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
  server->context_ = mg_start(&callbacks, nullptr, options);
  if (server->context_ == nullptr) {
    return absl::UnavailableError(fmt::format("cannot listen on {} for HTTP", address));
  }
  auto* data = const_cast<Pages*>(&server->pages_);
  mg_set_request_handler(server->context_, "/metrics$", &OnMetrics, data);
  mg_set_request_handler(server->context_, "/healthz$", &OnHealth, data);
  mg_set_request_handler(server->context_, "/readyz$", &OnReady, data);
  return server;
}

HttpServer::~HttpServer() {
  if (context_ != nullptr) mg_stop(context_);
}

int HttpServer::port() const {
  mg_server_port port{};
  return mg_get_server_ports(context_, 1, &port) > 0 ? port.port : 0;
}

}  // namespace kvstore::server
