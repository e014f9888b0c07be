#pragma once

#include <vector>

#include "routing/exchange.hpp"
#include "routing/table_index.hpp"

namespace stoat::routing {

// Matches bindings by their arguments against the message's headers. Argument x-match says how:
// `all` of the pairs (when absent) or `any` of them, of which pairs whose key starts with "x-" are
// left out; `all-with-x` and `any-with-x` take those too. x-match itself is never compared.
// A void argument asks for the header's presence only, other values compare by value. `all` of no
// pairs matches everything, `any` of none nothing.
class HeadersExchange final : public Exchange {
 public:
  HeadersExchange(const ExchangeSpec& spec, std::uint32_t number) : Exchange(spec, number) {}

  void match(RouteScratch& scratch) const override;

 private:
  // A binding's arguments, read once.
  struct Rule {
    Binding* binding;
    bool any;
    std::vector<TableIndex::Entry> pairs;  // view the binding's arguments

    bool matches(const TableIndex& headers) const;
  };

  void insert(Binding& binding) override;
  void erase(Binding& binding) override;

  std::vector<Rule> rules_;
};

}  // namespace stoat::routing
