#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "server/resp/request.h"

namespace kvstore::server::resp {

/// Carries out those puts that are not done, which are of one dataset, together and in their order: the store
/// writes them with as few writes as it can. Returns false if some are to be suspended, because their dataset
/// migrates. The answers are still to be appended (AppendPut).
bool CarryOutPuts(Core& core, std::span<Request* const> requests);

/// Appends the answer of a put that is done, and ends its call.
void AppendPut(Request& request, Encoder& out);

/// Whoever has puts that can be made on a thread that serves connections: a connection.
class PutMember {
 public:
  virtual ~PutMember() = default;
  /// Tells callers apart; null: of nobody.
  virtual const void* caller() const = 0;
  /// Returns its puts, which are of one dataset.
  virtual const Requests& puts() = 0;
  /// Its puts were carried out, or are to be suspended.
  ///
  /// took  The time that the thread which serves the member has worked for its puts.
  virtual void PutsDone(std::chrono::steady_clock::duration took) = 0;
};

/// Puts of all connections of a thread that have arrived at the same time, and are carried out together. All
/// calls are made on that thread.
class PutGroup {
 public:
  enum class Where : uint8_t {
    kHere,       ///< Carries out puts on the thread itself.
    kOnAnother,  ///< Carries them out on a thread of its own: what arrives meanwhile is the next group, so
                 ///< that many puts wait together for the device.
  };

  PutGroup(boost::asio::io_context& loop, Core& core, Where where)
      : loop_(loop), core_(core), where_(where) {}

  /// Has the puts carried out when the thread has dealt with everything that has arrived by now.
  void Add(std::shared_ptr<PutMember> member);

 private:
  using Members = std::vector<std::shared_ptr<PutMember>>;

  void Begin();
  /// Returns whether there is the other thread; if the system has none left, puts are carried out here.
  bool HasThread();
  /// Takes those that are carried out next.
  Members Take();
  /// Sorts the members so that each caller has one before any has the next.
  void LetCallersTakeTurns();
  void CarryOut(const Members& members);
  /// took  How long the thread that serves the members has worked for all of them.
  void End(const Members& members, std::chrono::steady_clock::duration took);

  boost::asio::io_context& loop_;
  Core& core_;
  const Where where_;
  Members members_;
  bool runs_ = false;                               // a group is being carried out on the other thread
  std::optional<boost::asio::thread_pool> thread_;  // the other thread, once it was needed
};

/// The groups of a thread.
struct PutGroups {
  PutGroups(boost::asio::io_context& loop, Core& core)
      : here(loop, core, PutGroup::Where::kHere), flushed(loop, core, PutGroup::Where::kOnAnother) {}

  PutGroup here;
  PutGroup flushed;
};

}  // namespace kvstore::server::resp
