#include "server/resp/protocol/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace kvstore::server::resp {
namespace {

/// The buffer of a connection that sends little.
constexpr size_t kSmallBuffer = size_t{4} << 10;
/// The buffer of a connection that sends much, unless one command needs more.
constexpr size_t kUsualBuffer = size_t{32} << 10;
/// There is always room for at least so many bytes.
constexpr size_t kLeastRoom = size_t{1} << 10;
/// The most bytes of a line that has a number.
constexpr size_t kMaxNumberLine = 32;
/// For so many arguments the memory is kept from one command to the next.
constexpr size_t kKeptPieces = 1'024;

/// Returns the number of a line "*3" or "$5", which may be negative; nothing if it is none.
std::optional<int64_t> NumberOf(std::string_view line) {
  int64_t number = 0;
  const char* const end = line.data() + line.size();
  const auto read = std::from_chars(line.data() + 1, end, number);
  if (line.size() < 2 || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

size_t Decoder::WantedCapacity() const {
  const size_t usual = filled_ || capacity_ >= kUsualBuffer ? kUsualBuffer : kSmallBuffer;
  return std::max(usual, std::bit_ceil(end_ - begin_ + kLeastRoom));
}

size_t Decoder::MemoryAfterPrepare() const { return WantedCapacity() + pieces_.capacity() * sizeof(Piece); }

std::span<char> Decoder::Prepare() {
  const size_t wanted = WantedCapacity();
  if (wanted != capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    if (end_ != begin_) std::memcpy(larger.get(), buffer_.get() + begin_, end_ - begin_);
    buffer_ = std::move(larger);
    capacity_ = wanted;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  }
  end_ -= begin_;
  begin_ = 0;
  return {buffer_.get() + end_, capacity_ - end_};
}

void Decoder::Commit(size_t bytes) {
  end_ += bytes;
  filled_ = end_ == capacity_;
}

void Decoder::End() {
  if (error_.empty()) error_ = "Protocol error: ended";
  buffer_.reset();
  capacity_ = begin_ = end_ = at_ = 0;
  std::vector<Piece>().swap(pieces_);
}

Decoder::State Decoder::Fail(std::string error) {
  error_ = std::move(error);
  return State::kError;
}

Decoder::State Decoder::Next(std::vector<std::string_view>& arguments) {
  arguments.clear();
  if (!error_.empty()) return State::kError;
  for (;;) {
    if (const State state = Read(); state != State::kCommand) return state;
    for (const Piece& piece : pieces_) {
      arguments.emplace_back(buffer_.get() + begin_ + piece.begin, piece.size);
    }
    EndCommand();
    // A command without arguments is none, and has no answer.
    if (!arguments.empty()) return State::kCommand;
  }
}

void Decoder::EndCommand() {
  begin_ += std::exchange(at_, 0);
  counted_ = false;
  sized_ = false;
  pieces_.clear();
  if (pieces_.capacity() > kKeptPieces) std::vector<Piece>().swap(pieces_);
}

Decoder::State Decoder::Read() {
  if (!counted_) {
    if (begin_ == end_) return State::kMore;
    if (buffer_[begin_] != '*') return ReadInline();
    if (const State state = ReadCount(); state != State::kCommand) return state;
  }
  return ReadArguments();
}

Decoder::State Decoder::ReadLine(size_t most, const char* what, std::string_view& line) {
  const std::string_view rest(buffer_.get() + begin_ + at_, end_ - begin_ - at_);
  const size_t end = rest.substr(0, most + 2).find('\n');
  if (end == std::string_view::npos) {
    return rest.size() < most + 2 ? State::kMore : Fail(fmt::format("Protocol error: too big {}", what));
  }
  line = rest.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  at_ += end + 1;
  return State::kCommand;
}

Decoder::State Decoder::ReadCount() {
  std::string_view line;
  if (const State state = ReadLine(kMaxNumberLine, "mbulk count string", line); state != State::kCommand)
    return state;
  const auto count = NumberOf(line);
  if (!count || *count > static_cast<int64_t>(limits_.arguments))
    return Fail("Protocol error: invalid multibulk length");
  counted_ = true;
  left_ = static_cast<size_t>(std::max<int64_t>(*count, 0));
  return State::kCommand;
}

Decoder::State Decoder::ReadInline() {
  std::string_view line;
  if (const State state = ReadLine(limits_.inline_bytes, "inline request", line); state != State::kCommand)
    return state;
  if (!SplitInline({buffer_.get() + begin_, line.size()}, pieces_))
    return Fail("Protocol error: unbalanced quotes in request");
  return pieces_.size() <= limits_.arguments ? State::kCommand
                                             : Fail("Protocol error: too many words in request");
}

Decoder::State Decoder::ReadArguments() {
  while (left_ > 0) {
    if (!sized_) {
      if (begin_ + at_ == end_) return State::kMore;
      if (const char first = buffer_[begin_ + at_]; first != '$') {
        const bool printable = first >= ' ' && first <= '~';
        return Fail(fmt::format("Protocol error: expected '$', got '{}'", printable ? first : '?'));
      }
      std::string_view line;
      if (const State state = ReadLine(kMaxNumberLine, "bulk count string", line); state != State::kCommand)
        return state;
      const auto size = NumberOf(line);
      if (!size || *size < 0 || *size > static_cast<int64_t>(limits_.argument_bytes))
        return Fail("Protocol error: invalid bulk length");
      size_ = static_cast<size_t>(*size);
      sized_ = true;
      if (at_ + size_ + 2 > limits_.command_bytes) {
        return Fail(fmt::format("Protocol error: a command of more than {} bytes", limits_.command_bytes));
      }
    }
    if (end_ - begin_ - at_ < size_ + 2) return State::kMore;
    const char* const argument = buffer_.get() + begin_ + at_;
    if (argument[size_] != '\r' || argument[size_ + 1] != '\n')
      return Fail("Protocol error: expected CRLF after a bulk string");
    pieces_.push_back({at_, size_});
    at_ += size_ + 2;
    sized_ = false;
    --left_;
  }
  return State::kCommand;
}

}  // namespace kvstore::server::resp
