#include "client/call_streams.h"

namespace kvstore::client {
namespace {

/// More calls than these at a time go over streams, until there is one alone.
constexpr int kFew = 2;

}  // namespace

CallStreams::Entered::Entered(CallStreams& streams) : streams_(streams) {
  const int calls = streams.calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  bool busy = streams.busy_.load(std::memory_order_relaxed);
  if (busy ? calls == 1 : calls > kFew) {
    busy = !busy;
    streams.busy_.store(busy, std::memory_order_relaxed);
  }
  streamed_ = busy && !streams.unknown_.load(std::memory_order_relaxed);
}

std::shared_ptr<CallStream> CallStreams::Get() {
  Slot& slot = streams_[channels_.Number()];
  const std::lock_guard lock(slot.mutex);
  if (!slot.stream || slot.stream->closed()) {
    slot.stream = std::make_shared<CallStream>(channels_.Stub(), metadata_);
  }
  return slot.stream;
}

}  // namespace kvstore::client
