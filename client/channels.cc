#include "client/channels.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <string>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/thread_number.h"
#include "wire/convert.h"

namespace kvstore::client {
namespace {

absl::StatusOr<std::string> ReadPem(std::string_view field, const std::string& file) {
  if (file.empty()) return std::string();
  auto text = ReadFile(file);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(fmt::format("tls.{}: {}", field, std::string(text.status().message())));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const ConnectOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  for (const auto& [field, file, place] : {std::tuple{"ca", &options.tls->ca, &ssl.pem_root_certs},
                                           std::tuple{"cert", &options.tls->cert, &ssl.pem_cert_chain},
                                           std::tuple{"key", &options.tls->key, &ssl.pem_private_key}}) {
    auto text = ReadPem(field, *file);
    if (!text.ok()) return text.status();
    *place = *std::move(text);
  }
  return grpc::SslCredentials(ssl);
}

absl::Status CheckAddress(const std::string& address) {
  if (address.starts_with("unix:") && address.size() > 5) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (colon != 0 && !port.empty() && port.size() <= 5 &&
      port.find_first_not_of("0123456789") == std::string::npos) {
    // gRPC would take a larger one modulo 65536.
    if (const int number = std::stoi(port); number >= 1 && number <= 65535) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("address: the port of '{}' is not 1 to 65535", address));
  }
  return absl::InvalidArgumentError(
      fmt::format("address: '{}' is not an address; give \"host:port\" or \"unix:/path\"", address));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Channels>> Channels::Open(const std::string& address,
                                                         const ConnectOptions& options) {
  if (auto status = CheckAddress(address); !status.ok()) return status;
  const auto credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();
  std::unique_ptr<Channels> channels(new Channels(address));
  for (size_t i = 0; i < std::max<size_t>(1, options.connections); ++i) {
    grpc::ChannelArguments arguments;
    // Gives each channel a socket of its own; otherwise channels to one address share one.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(wire::kMaxAnswerBytes);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    // This is also how long connecting may take with all handshakes, which over TLS are several round trips.
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    // No pings to estimate the network's bandwidth; instead the window is large enough for streams.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20);
    // gRPC's statistics of channels and its compression cost something in each call, and nothing here uses
    // them.
    arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
    // Compressed answers are refused: a megabyte could become a gigabyte before its size is checked. The
    // first argument refuses the call, but perhaps after the message was unpacked; the second one keeps it
    // packed.
    arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
    arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    // Notices when the server's machine is gone without having closed the connection.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    // Caller retries, because it knows which calls may be retried.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    if (options.tls && !options.tls->server_name.empty()) {
      arguments.SetSslTargetNameOverride(options.tls->server_name);
    }
    const auto channel = grpc::CreateCustomChannel(address, *credentials, arguments);
    channels->channels_.push_back(channel);
    channels->stubs_.push_back(v1::KVStore::NewStub(channel));
    channels->endpoints_.push_back(v1::Endpoints::NewStub(channel));
    channels->reports_.push_back(v1::Reports::NewStub(channel));
    channels->shards_.push_back(v1::Shards::NewStub(channel));
  }
  return channels;
}

void Channels::Pause(std::chrono::microseconds pause) const {
  const auto end = std::chrono::system_clock::now() + pause;
  grpc::Channel& channel = *channels_[Number()];
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY)
    return std::this_thread::sleep_for(pause);
  // A server that ends each connection at once must not be called again without any pause.
  std::this_thread::sleep_for(pause / 8);
  channel.WaitForConnected(end);
}

size_t Channels::Number() const { return ThreadNumber() % stubs_.size(); }

}  // namespace kvstore::client
