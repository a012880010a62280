#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
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
  /// Returns its puts, which are of one dataset.
  virtual const Requests& puts() = 0;
  /// Its puts were carried out, or are to be suspended.
  virtual void PutsDone() = 0;
};

/// Puts of all connections of a thread that have arrived at the same time, and are carried out together. All
/// calls are made on that thread.
class PutGroup {
 public:
  PutGroup(boost::asio::io_context& loop, Core& core) : loop_(loop), core_(core) {}

  /// Has the puts carried out when the thread has dealt with everything that has arrived by now.
  void Add(std::shared_ptr<PutMember> member);

 private:
  void CarryOut();

  boost::asio::io_context& loop_;
  Core& core_;
  std::vector<std::shared_ptr<PutMember>> members_;
};

}  // namespace kvstore::server::resp
