#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

#include "routing/exchange.hpp"
#include "routing/string_map.hpp"

namespace stoat::routing {

// Matches binding keys as patterns of words between dots: `*` stands for exactly one word, `#` for
// zero or more, any number of each. The empty key has no words; neighbouring dots hold an empty
// word, as in RabbitMQ.
//
// Binding keys form a trie over words. Matching reads the routing key once, left to right, with the
// set of trie nodes that the words so far can have led to; a node is in the set at most once, so a
// match costs at most (words of the key) x (nodes), whatever the patterns.
class TopicExchange final : public Exchange {
 public:
  TopicExchange(const ExchangeSpec& spec, std::uint32_t number);

  void match(RouteScratch& scratch) const override;

 private:
  using NodeId = std::uint32_t;
  using WordId = std::uint32_t;
  static constexpr NodeId kRoot = 0;
  static constexpr NodeId kNoNode = 0;  // the root is nobody's child
  static constexpr WordId kStar = 0;
  static constexpr WordId kHash = 1;
  static constexpr WordId kUnknownWord = 2;  // in no binding key: only wildcards take it
  static constexpr WordId kFirstWord = 3;

  struct Node {
    NodeId star = kNoNode;
    NodeId hash = kNoNode;
    std::uint32_t words = 0;  // children by literal word, in edges_
    bool is_hash = false;
    BindingList bindings;  // of the patterns that end here

    bool empty() const { return !star && !hash && !words && bindings.empty(); }
  };
  struct Word {
    WordId id = 0;
    std::uint32_t uses = 0;  // edges that carry it
  };
  struct Step {  // from a parent node to its child
    NodeId parent;
    std::string_view word;
    NodeId child;
  };

  void insert(Binding& binding) override;
  void erase(Binding& binding) override;

  void match_key(std::string_view routing_key, RouteScratch& scratch) const;
  void advance(NodeId node, WordId word, RouteScratch& scratch) const;
  void enter(NodeId node, RouteScratch& scratch) const;

  static std::vector<std::string_view> normal_form(std::string_view binding_key);
  static std::uint64_t edge(NodeId parent, WordId word) {
    return std::uint64_t{parent} << 32 | word;
  }
  WordId find_word(std::string_view word) const;
  NodeId child(NodeId parent, std::string_view word) const;
  NodeId add_child(NodeId parent, std::string_view word);
  void remove_child(const Step& step);

  std::vector<Node> nodes_;
  std::vector<NodeId> free_nodes_;
  boost::unordered_flat_map<std::uint64_t, NodeId> edges_;
  StringMap<Word> words_;
  std::vector<WordId> free_words_;
  WordId next_word_ = kFirstWord;
};

}  // namespace stoat::routing
