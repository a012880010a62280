#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "server/resp/request.h"

namespace kvstore::server::resp {

/// Commands of one connection that are carried out together, or one that is carried out alone, elsewhere than
/// where it was decoded.
class Run {
 public:
  enum class Kind : uint8_t {
    kAlone,        ///< By a worker.
    kReads,        ///< Reads of one dataset that wait for another machine, by a worker.
    kPuts,         ///< Small puts of one dataset that do not wait, with those of other connections.
    kFlushedPuts,  ///< The same, of puts that wait for the device.
    kPutsOnWorker  ///< Puts of one dataset that wait for a machine, or are large, by a worker.
  };

  /// How a command is carried out that is not carried out at once.
  static Kind KindOf(const Request& request);

  bool empty() const { return requests_.empty(); }
  Kind kind() const { return kind_; }
  const Requests& requests() const { return requests_; }

  /// Whether the command can be carried out together with those that are there.
  bool CanJoin(const Request& request) const;
  void Add(std::unique_ptr<Request> request);

  /// Carries it out on a worker; commands that are done stay so. kSuspended if some are to be tried again
  /// later, kPartly if answers are to be sent before the rest is carried out.
  Outcome CarryOut(Core& core, Version version);
  /// Whether some commands are still to be carried out.
  bool HasUndone() const;

  /// Appends the answers of the first commands that are done, and removes these.
  void TakeAnswers(Encoder& out);
  void Clear();

 private:
  static constexpr size_t kMost = 128;
  static constexpr size_t kMostBytes = size_t{1} << 20;
  /// With more cells, of all puts of a connection together, the loop would not serve others meanwhile.
  static constexpr size_t kMostCellsHere = 1'000;
  /// The most columns of a put of which it is counted how many are new.
  static constexpr size_t kMostCountedHere = 100;

  Kind kind_ = Kind::kAlone;
  size_t bytes_ = 0;  // of puts
  size_t cells_ = 0;  // of puts
  Requests requests_;
};

}  // namespace kvstore::server::resp
