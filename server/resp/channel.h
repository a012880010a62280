#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvstore::server::resp {

/// The owner of a channel, which is called on the thread of the socket when the channel has done something
/// that it began.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  virtual void OnOpened(const boost::system::error_code& error) = 0;
  virtual void OnRead(const boost::system::error_code& error, size_t bytes) = 0;
  virtual void OnWritten(const boost::system::error_code& error, size_t bytes) = 0;
  virtual void OnEnded() = 0;
};

/// A socket, encrypted or not. One read and one write may be under way at a time, each with an owner that
/// lives until it is done. All calls are made on the thread of the socket.
class Channel {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  virtual ~Channel() = default;
  /// Shakes hands, where there is encryption; calls OnOpened.
  virtual void Open(std::shared_ptr<ChannelOwner> owner) = 0;
  /// Waits for bytes, and reads them; calls OnRead.
  virtual void Read(std::shared_ptr<ChannelOwner> owner, std::span<char> room) = 0;
  /// Writes what can be written at once; returns how much that is, perhaps nothing.
  virtual size_t TryWrite(std::string_view bytes) = 0;
  /// Waits until some of it can be written; calls OnWritten.
  virtual void Write(std::shared_ptr<ChannelOwner> owner, std::string_view bytes) = 0;
  /// Ends what is sent, after all that was written, and waits until the other side has ended, too, so that it
  /// gets everything: a socket that is closed with unread bytes takes back what was sent. Calls OnEnded. No
  /// read or write may be under way.
  virtual void End(std::shared_ptr<ChannelOwner> owner) = 0;
  /// Whether the other side has reset the connection, or has ended both directions of a unix socket. False if
  /// all that is known is that it sends nothing more.
  virtual bool IsGone() = 0;
  /// Ends whatever is under way.
  virtual void Close() = 0;
  /// Returns the common name of the client's certificate, which the handshake has verified; empty if it
  /// presented none.
  virtual std::string CommonName() = 0;
};

std::unique_ptr<Channel> MakePlainChannel(Channel::Socket socket);
std::unique_ptr<Channel> MakeTlsChannel(Channel::Socket socket,
                                        std::shared_ptr<boost::asio::ssl::context> context);

}  // namespace kvstore::server::resp
