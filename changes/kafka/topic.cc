#include "changes/kafka/topic.h"

#include <stdexcept>

namespace kvstore::kafka {
namespace {

/// The most kilobytes of messages that may be in flight at a time.
constexpr const char* kQueuedKilobytes = "65536";
/// A column of a megabyte is longer as JSON. Brokers and topics have limits of their own.
constexpr const char* kMaxMessageBytes = "16000000";
constexpr int kPollMs = 100;

void Set(RdKafka::Conf& conf, const std::string& name, const std::string& value) {
  std::string error;
  if (conf.set(name, value, error) != RdKafka::Conf::CONF_OK) throw std::runtime_error(error);
}

}  // namespace

Topic::Topic(const TopicOptions& options) : topic_(options.topic) {
  const std::unique_ptr<RdKafka::Conf> conf(RdKafka::Conf::create(RdKafka::Conf::CONF_GLOBAL));
  Set(*conf, "bootstrap.servers", options.brokers);
  Set(*conf, "transactional.id", options.id);
  Set(*conf, "queue.buffering.max.kbytes", kQueuedKilobytes);
  Set(*conf, "message.max.bytes", kMaxMessageBytes);
  for (const auto& [name, value] : options.settings) Set(*conf, name, value);
  std::string error;
  if (conf->set("dr_cb", static_cast<RdKafka::DeliveryReportCb*>(this), error) != RdKafka::Conf::CONF_OK) {
    throw std::runtime_error(error);
  }
  producer_.reset(RdKafka::Producer::create(conf.get(), error));
  if (producer_ == nullptr) throw std::runtime_error(error);
  const std::unique_ptr<RdKafka::Error> failed(producer_->init_transactions(-1));
  if (failed != nullptr) throw std::runtime_error("brokers " + options.brokers + ": " + failed->str());
}

Topic::~Topic() {
  // Else it would wait for what is on its way.
  if (producer_ != nullptr) {
    producer_->purge(RdKafka::Producer::PURGE_QUEUE | RdKafka::Producer::PURGE_INFLIGHT);
  }
}

void Topic::Check(RdKafka::Error* error) {
  const std::unique_ptr<RdKafka::Error> owned(error);
  if (!failure_.empty()) throw std::runtime_error(failure_);
  if (owned != nullptr) throw std::runtime_error("topic " + topic_ + ": " + owned->str());
}

void Topic::Send(std::string_view key, std::string_view message, const std::string& token) {
  if (!open_) Check(producer_->begin_transaction());
  open_ = true;
  for (;;) {
    RdKafka::Headers* const headers = RdKafka::Headers::create();
    headers->add("token", token);
    const RdKafka::ErrorCode error = producer_->produce(
        topic_, RdKafka::Topic::PARTITION_UA, RdKafka::Producer::RK_MSG_COPY,
        const_cast<char*>(message.data()), message.size(), key.data(), key.size(), 0, headers, nullptr);
    if (error == RdKafka::ERR_NO_ERROR) break;
    delete headers;  // which produce takes only if it succeeds
    if (error != RdKafka::ERR__QUEUE_FULL) {
      throw std::runtime_error("topic " + topic_ + ": " + RdKafka::err2str(error));
    }
    producer_->poll(kPollMs);
    Check(nullptr);
  }
  pending_bytes_ += message.size();
  producer_->poll(0);
  Check(nullptr);
}

void Topic::Commit() {
  if (!open_) return;
  for (;;) {
    const std::unique_ptr<RdKafka::Error> error(producer_->commit_transaction(-1));
    if (error == nullptr) break;
    if (error->is_retriable()) continue;
    Check(nullptr);  // that of the message says more
    throw std::runtime_error("topic " + topic_ + ": " + error->str());
  }
  open_ = false;
  pending_bytes_ = 0;
}

void Topic::dr_cb(RdKafka::Message& message) {
  if (message.err() == RdKafka::ERR_NO_ERROR || !failure_.empty()) return;
  failure_ = "topic " + topic_ + ": " + message.errstr();
}

}  // namespace kvstore::kafka
