#pragma once

#include <chrono>
#include <cstddef>

/// Limits on what a client of the HTTP API may have a connection keep, and for how long, beside
/// limits.stall_ms.
namespace kvstore::server {

/// The head of a request: its line and its headers.
inline constexpr size_t kMaxHeadBytes = size_t{16} << 10;
/// The body of a request, or a line of several.
inline constexpr size_t kMaxBodyBytes = size_t{20} << 20;
/// The same for operations that anybody may ask for.
inline constexpr size_t kMaxBodyOfAnybody = size_t{1} << 10;
/// The body of a request that is a form, whose parameters take more memory than they are long.
inline constexpr size_t kMaxFormBytes = size_t{64} << 10;
/// The parameters of a request, in its target or its form.
inline constexpr size_t kMaxParameters = 100;
/// The values in a body, or in a line.
inline constexpr size_t kMaxBodyValues = 1'000'000;
/// The values in a body of an operation that anybody may ask for.
inline constexpr size_t kMaxValuesOfAnybody = 16;
/// Up to this size a body is kept before its call is admitted without being counted, and parsed where it was
/// read.
inline constexpr size_t kParsedHere = size_t{64} << 10;
/// The memory that a request takes beside its body.
inline constexpr size_t kBareRequestBytes = size_t{4} << 10;
/// So much is read ahead of the request that is being carried out.
inline constexpr size_t kMaxAhead = size_t{32} << 10;
/// So much is given to the system at a time, so that a client that takes something is seen to.
inline constexpr size_t kMaxWritten = size_t{256} << 10;
/// With more answers that the client has not taken none of its lines is carried out.
inline constexpr size_t kMaxUnreadAnswers = size_t{256} << 10;
/// Answers to lines are sent together until they have so many bytes.
inline constexpr size_t kSentTogether = size_t{64} << 10;
/// Bytes that a client sends after the last answer are discarded; beyond so many the connection is closed.
inline constexpr size_t kMaxLingering = size_t{4} << 20;

/// How long a head may take to come, or a TLS handshake.
inline constexpr std::chrono::seconds kHeadTimeout{10};
/// How often it is looked whether the client of a call, whose connection is not read meanwhile, is still
/// there.
inline constexpr std::chrono::milliseconds kLookForClient{250};
/// How long a connection may stay open without a request.
inline constexpr std::chrono::seconds kIdleTimeout{300};
/// How long a client may take to close a connection whose last answer was sent.
inline constexpr std::chrono::seconds kLingerTimeout{2};
/// A client that sends or takes less, beyond limits.stall_ms, is cut off; so is one that sends or takes
/// nothing for limits.stall_ms.
inline constexpr size_t kMinBytesPerSecond = size_t{16} << 10;

}  // namespace kvstore::server
