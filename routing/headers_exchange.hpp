#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "routing/exchange.hpp"
#include "routing/table_index.hpp"

namespace stoat::routing {

// Matches bindings by their arguments against the message's headers. Argument x-match says how:
// `all` of the pairs (when absent) or `any` of them, of which pairs whose key starts with "x-" are
// left out; `all-with-x` and `any-with-x` take those too. x-match itself is never compared.
// A void argument asks for the header's presence only, other values compare by value. `all` of no
// pairs matches everything, `any` of none nothing.
//
// A binding is filed under the pairs of which a message must have one: an `all` under one of its
// pairs, an `any` under each. A message then looks at what is filed under its own pairs only.
class HeadersExchange final : public Exchange {
 public:
  HeadersExchange(const ExchangeSpec& spec, std::uint32_t number) : Exchange(spec, number) {}

  void match(RouteScratch& scratch) const override;

 private:
  struct Pair {
    TableIndex::Entry entry;  // views the binding's arguments
    std::size_t hash;         // where a rule is filed under this pair
    std::uint32_t place = 0;  // there, if it is filed

    bool matches(const TableIndex& headers) const;
  };
  // A binding's arguments, read once.
  struct Rule {
    Binding& binding;
    const bool any;
    std::vector<Pair> pairs;
    std::uint32_t filed_pair = 0;  // of an `all`
  };
  struct Filed {
    Rule* rule;
    std::uint32_t pair;

    bool matches(const TableIndex& headers) const;
  };

  void insert(Binding& binding) override;
  void erase(Binding& binding) override;

  void match_filed(std::size_t hash, RouteScratch& scratch) const;
  void file(Rule& rule, std::uint32_t pair);
  void unfile(const Pair& pair);
  std::uint32_t least_used_pair(const Rule& rule) const;

  BindingList always_;  // the bindings with `all` of no pairs; the others have a rule
  boost::unordered_flat_map<const Binding*, std::unique_ptr<Rule>> rules_;
  boost::unordered_flat_map<std::size_t, std::vector<Filed>> filed_;  // none is empty
};

}  // namespace stoat::routing
