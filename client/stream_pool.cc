#include "client/stream_pool.h"

namespace kvstore::client {
namespace {

/// With more calls at a time than these all go over streams, until one of them is alone.
constexpr int kFew = 2;

}  // namespace

StreamPool::ActiveCall::ActiveCall(StreamPool& streams) : streams_(streams) {
  const int calls = streams.calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  bool busy = streams.busy_.load(std::memory_order_relaxed);
  if (busy ? calls == 1 : calls > kFew) {
    busy = !busy;
    streams.busy_.store(busy, std::memory_order_relaxed);
  }
  streamed_ = busy && !streams.unsupported_.load(std::memory_order_relaxed);
}

std::shared_ptr<MultiplexedStream> StreamPool::Get() {
  Slot& slot = streams_[channels_.Number()];
  const MutexLock lock(slot.mutex);
  if (!slot.stream || slot.stream->closed()) {
    slot.stream = std::make_shared<MultiplexedStream>(channels_.Channel(), metadata_);
  }
  return slot.stream;
}

}  // namespace kvstore::client
