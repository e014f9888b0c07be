#include "broker/home_impl.hpp"

#include <utility>

#include "base/assert.hpp"

namespace stoat::broker {

Home::Impl::Impl(store::Store& store_in, Hooks hooks_in, HomeLimits limits_in)
    : store(store_in),
      hooks(std::move(hooks_in)),
      limits(limits_in),
      door(std::make_shared<Door>(Door{hooks.post, this})),
      outboxes(limits.delivery_window_bytes),
      persister(outboxes, limits,
                [this](Persister::BatchNumber number, store::Batch batch) {
                  submit(number, std::move(batch));
                }),
      budget(limits),
      context{persister, budget, limits,
              [this](store::StreamId stream, std::uint32_t generation,
                     const ReadyMessages::ReadRequest& request) {
                read(stream, generation, request);
              }} {}

Home::Impl::~Impl() {
  door->home = nullptr;
}

Queue* Home::Impl::find(QueueId id) {
  if (last != nullptr && last_id == id) return last;
  const auto found = queues.find(id);
  if (found == queues.end()) return nullptr;
  last_id = id;
  last = found->second.get();
  return last;
}

Consumer* Home::Impl::find_consumer(QueueId queue, ConnectionId connection, ConsumerId consumer) {
  Outbox* outbox = outboxes.find(connection);
  Consumer* found = outbox != nullptr ? outbox->find_consumer(consumer) : nullptr;
  return found != nullptr && found->queue->id() == queue ? found : nullptr;
}

void Home::Impl::take_publishes(Outbox& publisher, std::vector<Publish>& publishes) {
  Persister::ConfirmSlot confirm = Persister::kNoConfirm;
  for (std::size_t i = 0; i < publishes.size(); ++i) {
    Publish& publish = publishes[i];
    if (Queue* queue = find(publish.queue)) {
      queue->publish(publish, publisher, confirm);
    } else {
      publisher.add_taken(publish.message->stored().size());
    }
    // The publishes of one tag stand together, and are answered once.
    const bool tag_ends = i + 1 == publishes.size() || publishes[i + 1].tag != publish.tag ||
                          publishes[i + 1].channel != publish.channel;
    if (publish.tag.value == 0 || !tag_ends) continue;
    if (confirm == Persister::kNoConfirm) publisher.confirm(publish.channel, publish.tag);
    confirm = Persister::kNoConfirm;
  }
  persister.seal_if_full();
}

void Home::Impl::take_lease(Outbox& outbox, const Lease& lease) {
  Consumer* consumer = outbox.find_consumer(lease.consumer);
  if (consumer != nullptr) {
    consumer->queue->add_lease(*consumer, lease.count);
  } else {
    outbox.return_stray_lease(lease.consumer, lease.count);
  }
}

// --- the store ---

void Home::Impl::submit(Persister::BatchNumber number, store::Batch batch) {
  store.submit(std::move(batch), [door = door, number](const std::optional<store::StoreError>& e) {
    door->post([door, number, failed = e.has_value()] {
      if (door->home != nullptr) door->home->batch_completed(number, failed);
    });
  });
}

void Home::Impl::batch_completed(Persister::BatchNumber number, bool failed) {
  const Persister::Completed completed = persister.completed(number, failed);
  for (const store::QueueNumbers& numbers : completed.numbers) {
    if (Queue* queue = find(numbers.stream.queue)) queue->numbers_written(numbers);
  }
  for (const QueueId id : completed.watchers) {
    if (Queue* queue = find(id)) queue->puts_committed();
  }
}

void Home::Impl::read(store::StreamId stream, std::uint32_t generation,
                      const ReadyMessages::ReadRequest& request) {
  store.read(stream, request.from, request.limit,
             [door = door, queue = stream.queue, generation](store::ReadResult result) {
               auto moved = std::make_shared<store::ReadResult>(std::move(result));
               door->post([door, queue, generation, moved] {
                 if (door->home == nullptr) return;
                 door->home->read_completed(queue, generation, std::move(*moved));
               });
             });
}

void Home::Impl::read_completed(QueueId id, std::uint32_t generation, store::ReadResult result) {
  Queue* queue = find(id);
  if (queue == nullptr) return;
  if (!result.error) return queue->loaded(generation, std::move(result));
  if (hooks.unreadable) hooks.unreadable(id, result.error->text);
  queue->read_failed(generation);
}

// --- the end of a turn ---

void Home::Impl::dispatch_changed() {
  dispatching.swap(context.changed);
  for (Queue* queue : dispatching) queue->dispatch();
  dispatching.clear();
}

void Home::Impl::tell_unused() {
  const auto unused = std::exchange(context.unused, {});
  for (const QueueId id : unused) hooks.unused(id);
}

void Home::Impl::finish_gets() {
  auto finished = std::exchange(context.finished_gets, {});
  for (auto& [done, got] : finished) done(std::move(got));
}

void Home::Impl::finish_drains() {
  if (drains.empty()) return;
  persister.write_ranges_alone();
  persister.submit_if_idle();
  if (!persister.idle()) return;
  const auto done = std::exchange(drains, {});
  for (const auto& fn : done) fn();
}

}  // namespace stoat::broker
