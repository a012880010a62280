#pragma once

#include <librdkafka/rdkafkacpp.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvstore::kafka {

struct TopicOptions {
  std::string brokers;  ///< "host:9092,..."
  std::string topic;
  /// The transactional ID. If two programs have the same one, the one that was started last sends, and the
  /// other one fails: messages that a process that is nearly gone still has in flight are not stored after
  /// those of its successor.
  std::string id;
  /// Further settings of librdkafka, such as those for TLS, by name.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// A topic of Kafka, to which messages are sent in transactions. Methods throw std::runtime_error, whose
/// message is for whoever has started the program; nothing can be sent then any more. Externally
/// synchronised.
class Topic : private RdKafka::DeliveryReportCb {
 public:
  /// Waits for the brokers, as long as transaction.timeout.ms says.
  explicit Topic(const TopicOptions& options);
  ~Topic() override;

  /// Sends a message, with a header "token". Waits while too much is on its way.
  ///
  /// key  Messages of one key come in their order.
  void Send(std::string_view key, std::string_view message, const std::string& token);
  /// Ends the transaction: all that was sent is stored when this returns.
  void Commit();
  /// How much was sent since the last Commit.
  size_t pending_bytes() const { return pending_bytes_; }

 private:
  void dr_cb(RdKafka::Message& message) override;
  /// Throws the error, if there is one.
  void Check(RdKafka::Error* error);

  const std::string topic_;
  std::unique_ptr<RdKafka::Producer> producer_;
  bool open_ = false;  // a transaction is
  size_t pending_bytes_ = 0;
  std::string failure_;  // of a message
};

}  // namespace kvstore::kafka
