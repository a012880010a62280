#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace kvstore::server {

/// The bytes of a connection, encrypted or not. There may be one read and one write at a time. To be used on
/// the strand of its socket, on which it calls back; it must live until all callbacks were called.
class ByteStream {
 public:
  using Error = boost::system::error_code;
  using Done = std::function<void(Error, size_t)>;

  /// tls  Null: the bytes are not encrypted.
  static std::unique_ptr<ByteStream> Make(boost::asio::ip::tcp::socket socket,
                                          std::shared_ptr<boost::asio::ssl::context> tls);
  virtual ~ByteStream() = default;

  /// Shakes hands, where the bytes are encrypted. Called once, before all others.
  virtual void Handshake(std::function<void(Error)> done) = 0;
  virtual void ReadSome(boost::asio::mutable_buffer buffer, Done done) = 0;
  virtual void WriteSome(boost::asio::const_buffer buffer, Done done) = 0;
  /// Tells the client that nothing more is sent. Nothing may be being written.
  ///
  /// gone  Called if it turns out that the client is gone, or has said the same; perhaps never.
  virtual void EndSending(std::function<void()> gone) = 0;
  /// Returns the common name of the client's certificate, which the handshake has verified; empty if there is
  /// none.
  virtual std::string CommonName() = 0;
  virtual boost::asio::ip::tcp::socket& socket() = 0;
};

}  // namespace kvstore::server
