#include "server/resp/channel.h"

#include <poll.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

#include "server/tls/common_name.h"

namespace kvstore::server::resp {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Socket = Channel::Socket;

/// Returns whether a socket reports an error, or that both of its directions have ended.
bool HasHungUp(int socket) {
  pollfd state{.fd = socket, .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLERR | POLLHUP)) != 0;
}

class PlainChannel : public Channel {
 public:
  explicit PlainChannel(Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
  }

  void Open(std::shared_ptr<ChannelOwner> owner) override {
    asio::post(socket_.get_executor(), [owner = std::move(owner)] { owner->OnOpened({}); });
  }
  void Read(std::shared_ptr<ChannelOwner> owner, std::span<char> room) override {
    socket_.async_read_some(
        asio::buffer(room.data(), room.size()),
        [owner = std::move(owner)](const error_code& error, size_t bytes) { owner->OnRead(error, bytes); });
  }
  size_t TryWrite(std::string_view bytes) override {
    error_code error;
    const size_t written = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
    return error ? 0 : written;
  }
  void Write(std::shared_ptr<ChannelOwner> owner, std::string_view bytes) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             [owner = std::move(owner)](const error_code& error, size_t count) {
                               owner->OnWritten(error, count);
                             });
  }
  void End(std::shared_ptr<ChannelOwner> owner) override {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    Discard(std::move(owner));
  }
  bool IsGone() override { return HasHungUp(socket_.native_handle()); }
  void Close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  std::string CommonName() override { return ""; }

 private:
  /// Reads and forgets everything until the other side ends.
  void Discard(std::shared_ptr<ChannelOwner> owner) {
    socket_.async_read_some(asio::buffer(discarded_),
                            [this, owner = std::move(owner)](const error_code& error, size_t) mutable {
                              if (error) return owner->OnEnded();
                              Discard(std::move(owner));
                            });
  }

  Socket socket_;
  std::array<char, 1024> discarded_;
};

class TlsChannel : public Channel {
 public:
  TlsChannel(Socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {}

  void Open(std::shared_ptr<ChannelOwner> owner) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [owner = std::move(owner)](const error_code& error) { owner->OnOpened(error); });
  }
  void Read(std::shared_ptr<ChannelOwner> owner, std::span<char> room) override {
    stream_.async_read_some(
        asio::buffer(room.data(), room.size()),
        [owner = std::move(owner)](const error_code& error, size_t bytes) { owner->OnRead(error, bytes); });
  }
  size_t TryWrite(std::string_view) override { return 0; }
  void Write(std::shared_ptr<ChannelOwner> owner, std::string_view bytes) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             [owner = std::move(owner)](const error_code& error, size_t count) {
                               owner->OnWritten(error, count);
                             });
  }
  void End(std::shared_ptr<ChannelOwner> owner) override {
    stream_.async_shutdown([owner = std::move(owner)](const error_code&) { owner->OnEnded(); });
  }
  bool IsGone() override { return HasHungUp(stream_.lowest_layer().native_handle()); }
  void Close() override {
    error_code ignored;
    stream_.lowest_layer().close(ignored);
  }
  std::string CommonName() override { return CommonNameOf(stream_.native_handle()); }

 private:
  const std::shared_ptr<asio::ssl::context> context_;
  asio::ssl::stream<Socket> stream_;
};

}  // namespace

std::unique_ptr<Channel> MakePlainChannel(Socket socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

std::unique_ptr<Channel> MakeTlsChannel(Socket socket, std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsChannel>(std::move(socket), std::move(context));
}

}  // namespace kvstore::server::resp
