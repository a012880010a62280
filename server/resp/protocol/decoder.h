#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/resp/protocol/inline_command.h"

namespace kvstore::server::resp {

/// The bounds of a command. One that exceeds them is an error, after which nothing more can be decoded.
struct DecoderLimits {
  size_t argument_bytes = 0;  ///< The size of one argument.
  size_t arguments = 0;       ///< The number of arguments of one command, its name among them.
  size_t command_bytes = 0;   ///< The size of one command as it is sent.
  size_t inline_bytes = 0;    ///< The size of a command that is typed as a line.
};

/// Takes commands out of the bytes of a connection, as they arrive: arrays of bulk strings, as clients send
/// them, and lines, as people type them. An array within a command is an error, so nothing nests. Keeps the
/// bytes until they are decoded; its memory grows with what has arrived of one command, not with what the
/// command says about its size. Externally synchronised.
class Decoder {
 public:
  enum class State : uint8_t {
    kCommand,  ///< There is a command.
    kMore,     ///< More bytes are needed.
    kError,    ///< The bytes are no command; see error().
  };

  explicit Decoder(const DecoderLimits& limits) : limits_(limits) {}

  /// The limits are in force for what is decoded from now on.
  void SetLimits(const DecoderLimits& limits) { limits_ = limits; }

  /// Returns room for bytes that arrive; never empty. The words that Next has returned are no longer valid.
  std::span<char> Prepare();
  /// So many bytes were written to the room that Prepare returned last.
  void Commit(size_t bytes);

  /// Decodes the next command. Its arguments point into the decoder's memory, until the next Prepare; the
  /// first one is the name. There is at least one.
  State Next(std::vector<std::string_view>& arguments);
  /// Gives its memory back. Nothing more is decoded from then on, and what Next has returned is no longer
  /// valid.
  void End();
  /// Says what was wrong, in words that can be sent back.
  const std::string& error() const { return error_; }

  /// Whether a part of a command has arrived.
  bool IsInsideCommand() const { return begin_ != end_; }
  /// Returns how many bytes it has allocated.
  size_t memory() const { return capacity_ + pieces_.capacity() * sizeof(Piece); }
  /// Returns how many it will have allocated after the next Prepare.
  size_t MemoryAfterPrepare() const;

 private:
  State Fail(std::string error);
  /// Reads what remains of the command.
  State Read();
  State ReadCount();
  State ReadInline();
  State ReadArguments();
  /// Returns the line at at_, without its end, and steps past it; kMore if its end has not arrived. A line
  /// of more than `most` bytes is an error.
  State ReadLine(size_t most, const char* what, std::string_view& line);
  /// Forgets what was decoded.
  void EndCommand();
  /// Returns the capacity that the next Prepare needs.
  size_t WantedCapacity() const;

  DecoderLimits limits_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;     // of what was not decoded
  size_t end_ = 0;       // of what has arrived
  bool filled_ = false;  // whether all room was used the last time

  // The command that is being read, by places relative to begin_.
  size_t at_ = 0;              // how much of it was read
  bool counted_ = false;       // left_ is known
  size_t left_ = 0;            // arguments that were not read
  bool sized_ = false;         // size_ is known
  size_t size_ = 0;            // of the argument that is being read
  std::vector<Piece> pieces_;  // its arguments
  std::string error_;
};

}  // namespace kvstore::server::resp
