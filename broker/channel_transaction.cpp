// Class tx: publishes and settles that take effect together.

#include <map>

#include "broker/channel.hpp"
#include "broker/channel_reply.hpp"
#include "wire/tx.hpp"

namespace stoat::broker {

namespace {

using wire::ChannelErrorCode;
namespace tx = wire::tx;

}  // namespace

asio::awaitable<void> Channel::handle_transaction_method(wire::MethodId id) {
  if (id == tx::Select::kId) {
    if (confirms_) {
      throw wire::ChannelError(ChannelErrorCode::precondition_failed,
                               "cannot switch from confirm to tx mode", id);
    }
    if (!transaction_) transaction_.emplace();
    reply(tx::SelectOk{});
    co_return;
  }
  if (id != tx::Commit::kId && id != tx::Rollback::kId) throw_unknown_method(id);
  if (!transaction_) {
    throw wire::ChannelError(ChannelErrorCode::precondition_failed, "channel is not transactional",
                             id);
  }
  if (id == tx::Commit::kId) {
    co_await commit();
    reply(tx::CommitOk{});
  } else {
    rollback();
    reply(tx::RollbackOk{});
  }
}

// Every home prepares, one batch carries what must be durable, then every home lets go: a crash in
// between leaves all of it or nothing.
asio::awaitable<void> Channel::commit() {
  Transaction work = std::exchange(*transaction_, {});
  Worker& worker = connection_.worker();
  std::map<WorkerIndex, TxWork> by_home;
  for (const TxPublished& publish : work.publishes) {
    if (publish.queues.empty() && publish.mandatory) return_message(*publish.message);
    for (QueueId queue : publish.queues) {
      by_home[worker.home_of(queue)].publishes.push_back({queue, publish.message});
    }
  }
  for (const auto& [entry, kind] : work.settles) {
    by_home[worker.home_of(entry.queue)].settles.push_back(
        {entry.queue, entry.stream, kind, entry.sequence, entry.sequence});
    if (entry.limited && limited_unacked_ > 0) --limited_unacked_;
  }

  store::Batch batch;
  batch.sync = true;
  std::map<WorkerIndex, Home::TxId> prepared;
  for (auto& [index, part] : by_home) {
    Worker& home = worker.peer(index);
    auto prepare = [&home, &batch, &part, connection = connection_.id()] {
      return home.home().prepare(connection, std::move(part), batch);
    };
    prepared[index] = co_await run_on(home, std::move(prepare));
  }
  if (!batch.puts.empty() || !batch.settles.empty() || !batch.numbers.empty()) {
    const auto failure = co_await worker.submit(std::move(batch));
    if (failure) {
      throw wire::ConnectionError(wire::ConnectionErrorCode::internal_error,
                                  "the transaction could not be stored", tx::Commit::kId);
    }
  }
  for (const auto& [index, id] : prepared) {
    Worker& home = worker.peer(index);
    auto release = [&home, id = id] { home.home().release(id); };
    co_await run_on(home, std::move(release));
  }
  unacked_.drop_transaction();
  after_settles();
}

void Channel::rollback() {
  *transaction_ = {};
  unacked_.restore_transaction();
}

}  // namespace stoat::broker
