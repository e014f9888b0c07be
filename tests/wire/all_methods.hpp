#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "wire/access.hpp"
#include "wire/basic.hpp"
#include "wire/channel.hpp"
#include "wire/codec.hpp"
#include "wire/confirm.hpp"
#include "wire/connection.hpp"
#include "wire/exchange.hpp"
#include "wire/queue.hpp"
#include "wire/tx.hpp"

namespace stoat::wire::test {

// Every method struct there is.
using AllMethods = std::tuple<
    connection::Start, connection::StartOk, connection::Secure, connection::SecureOk,
    connection::Tune, connection::TuneOk, connection::Open, connection::OpenOk, connection::Close,
    connection::CloseOk, connection::Blocked, connection::Unblocked, connection::UpdateSecret,
    connection::UpdateSecretOk, channel::Open, channel::OpenOk, channel::Flow, channel::FlowOk,
    channel::Close, channel::CloseOk, access::Request, access::RequestOk, exchange::Declare,
    exchange::DeclareOk, exchange::Delete, exchange::DeleteOk, exchange::Bind, exchange::BindOk,
    exchange::Unbind, exchange::UnbindOk, queue::Declare, queue::DeclareOk, queue::Bind,
    queue::BindOk, queue::Purge, queue::PurgeOk, queue::Delete, queue::DeleteOk, queue::Unbind,
    queue::UnbindOk, basic::Qos, basic::QosOk, basic::Consume, basic::ConsumeOk, basic::Cancel,
    basic::CancelOk, basic::Publish, basic::Return, basic::Deliver, basic::Get, basic::GetOk,
    basic::GetEmpty, basic::Ack, basic::Reject, basic::RecoverAsync, basic::Recover,
    basic::RecoverOk, basic::Nack, confirm::Select, confirm::SelectOk, tx::Select, tx::SelectOk,
    tx::Commit, tx::CommitOk, tx::Rollback, tx::RollbackOk>;

// Decodes payload as the method its ids name and passes it to visit; false when no method has
// those ids or it does not decode.
template <class Visit>
bool visit_method(std::string_view payload, Visit visit) {
  const std::optional<MethodId> id = peek_method_id(payload);
  if (!id) return false;
  bool decoded = false;
  const auto attempt = [&]<class M>(const M*) {
    if (*id != M::kId) return;
    if (const std::optional<M> method = decode_method<M>(payload)) {
      decoded = true;
      visit(*method);
    }
  };
  [&]<class... M>(const std::tuple<M...>*) {
    (attempt(static_cast<const M*>(nullptr)), ...);
  }(static_cast<const AllMethods*>(nullptr));
  return decoded;
}

}  // namespace stoat::wire::test
